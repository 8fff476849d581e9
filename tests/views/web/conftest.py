"""A real server, in a thread, on a free port."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn

from paceline.views.web.app import make_app
from paceline.views.web.catalogue import Catalogue
from paceline.views.web.timed_protocol import TimedProtocol


@contextmanager
def running(folder: Path, **options: object) -> Generator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server: uvicorn.Server
        app = make_app(Catalogue([folder]), ended=lambda: server.should_exit, **options)  # type: ignore[arg-type]
        server = uvicorn.Server(uvicorn.Config(app, http=TimedProtocol, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def serve() -> Generator[Callable[..., str]]:
    """Serve a folder until the test is over; returns the address."""
    with ExitStack() as stack:
        yield lambda folder, **options: stack.enter_context(running(folder, **options))
