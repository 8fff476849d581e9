"""The server process: listens, says where, and ends cleanly with streams still open."""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import uvicorn

from paceline.errors import InputError
from paceline.views.web.app import make_app
from paceline.views.web.catalogue import Catalogue
from paceline.views.web.security import is_loopback, token_for

NICE = 5  # below a training on the same cores
READ_AHEAD = 4  # studies


def serve_studies(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8787,
    token: str | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve studies until Ctrl-C.

    Args:
        folders: study folders, or folders with studies below them.
        host: address to listen on; anything but this machine asks for a token.
        port: 0 takes a free one.
        token: what to ask for; one is made where it is needed and not given.
        say: told the address to open.
    """
    shelf, secret = Catalogue(folders), token_for(host, token)
    listening = _bound(host, port)
    port = listening.getsockname()[1]
    server: uvicorn.Server
    app = make_app(
        shelf, local=is_loopback(host), token=secret, cookie=f"paceline-{port}", ended=lambda: server.should_exit
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, server_header=False))
    os.nice(NICE)
    threading.Thread(target=_read_ahead, args=(shelf,), daemon=True).start()
    shown = f"[{host}]" if ":" in host else host
    asked = "" if secret is None else f"?token={secret}"
    count = len(shelf.names())
    say(f"{count} stud{'y' if count == 1 else 'ies'} at http://{shown}:{port}/{asked}  (Ctrl-C ends it)")
    with listening:
        server.run([listening])


def _read_ahead(shelf: Catalogue) -> None:
    """Read the studies written last, and what draws them, so that all is there when a page asks for it."""
    import_module("plotly.graph_objects").Scatter()
    for name in [*shelf.names()][:READ_AHEAD]:
        shelf.get(name)


def _bound(host: str, port: int) -> socket.socket:
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
