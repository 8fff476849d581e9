"""A connection whose request never comes to an end is closed. One that is answered stays."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from paceline.views.web import timed_protocol
from tests.views.web.studies import write

TIMEOUT = 0.4


@pytest.fixture
def address(tmp_path: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(timed_protocol, "REQUEST_TIMEOUT", TIMEOUT)
    write(tmp_path / "first")
    return serve(tmp_path)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_a_request_is_not_waited_for(address: str, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_bytes_that_trickle_in_change_nothing(address: str) -> None:
    port = int(address.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as connection,
        pytest.raises(OSError, match=r"Broken pipe|reset"),
    ):
        _trickle(connection)


def _trickle(connection: socket.socket) -> None:
    for _ in range(400):
        connection.sendall(b"G")
        time.sleep(TIMEOUT / 8)


def test_an_answer_may_take_longer(address: str) -> None:
    with httpx.stream("GET", f"{address}/events/first?since=0.0", timeout=20) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        time.sleep(3 * TIMEOUT)
        assert any(line.startswith("data") for line in lines)
