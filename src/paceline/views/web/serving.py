"""The server process: listens, prints its address, and ends cleanly while pages are open."""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import uvicorn

from paceline.errors import InputError
from paceline.views.web.app import make_app
from paceline.views.web.catalogue import Catalogue, StillReadingError
from paceline.views.web.security import token_for
from paceline.views.web.timed_protocol import TimedProtocol

NICE = 5  # below a training on the same cores
READ_AHEAD = 4  # studies


def serve_studies(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8787,
    token: str | None = None,
    write: Callable[[str], None] = print,
) -> None:
    """Serve studies until Ctrl-C.

    Args:
        folders: study folders, or folders with studies below them.
        host: address to listen on. If others can reach it, a token is asked for.
        port: 0 takes a free one.
        token: the token; one is made if it is needed and not given.
        write: prints the address to open.
    """
    catalogue, secret = Catalogue(folders), token_for(host, token)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    server: uvicorn.Server
    app = make_app(catalogue, host=host, token=secret, cookie=f"paceline-{port}", ended=lambda: server.should_exit)
    server = uvicorn.Server(
        uvicorn.Config(
            app, http=TimedProtocol, log_level="warning", timeout_graceful_shutdown=2, server_header=False, ws="none"
        )
    )
    if os.name == "posix":
        os.nice(NICE)
    threading.Thread(target=_read_ahead, args=(catalogue,), daemon=True).start()
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/" + (f"?token={secret}" if secret else "")
    count = len(catalogue.studies())
    write(f"{count} stud{'y' if count == 1 else 'ies'} at {address}  (Ctrl-C ends it)")
    with listening:
        server.run([listening])


def _read_ahead(catalogue: Catalogue) -> None:
    """Import plotly and read the studies written last, before a page asks for them."""
    import_module("plotly.graph_objects").Scatter()
    for name in [*catalogue.studies()][:READ_AHEAD]:
        with suppress(StillReadingError):  # for a page
            catalogue.get(name)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"{host!r} is not an address of this machine ({error}): pass another --host") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)  # from now on requests wait, also for a server that is still starting
    except OSError as error:
        bound.close()
        raise InputError(f"{host}:{port} cannot be listened on ({error.strerror}): pass another --port") from error
    return bound
