"""`paceline serve` as a command."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.views.studies import EVENTS
from tests.views.web.studies import write


def started(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "paceline", "serve", *arguments, "--port", "0"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_it_serves_until_it_is_stopped_also_with_a_page_open(tmp_path: Path) -> None:
    write(tmp_path / "first", EVENTS[:6])
    with started(str(tmp_path)) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"1 study at (http://127\.0\.0\.1:\d+/)  \(Ctrl-C ends it\)", line)
            assert found is not None, line
            assert httpx.get(f"{found[1]}summary/first", timeout=60).json()["events"] == 6
            with httpx.stream("GET", f"{found[1]}events/first", timeout=60) as answer:
                assert next(answer.iter_lines()) == "retry: 1000"
                process.send_signal(signal.SIGINT)
                rest = process.stderr.read()
            assert process.wait(60) == 130
            assert rest == "stopped\n"
        finally:
            process.kill()


def test_another_address_gets_a_token(tmp_path: Path) -> None:
    with started(str(tmp_path), "--host", "0.0.0.0") as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"0 studies at http://0\.0\.0\.0:(\d+)/\?token=(\S{32,})", line)
            assert found is not None, line
            address = f"http://127.0.0.1:{found[1]}/"
            assert httpx.get(address, timeout=60).status_code == 401
            assert httpx.get(f"{address}?token={found[2]}", timeout=60).status_code == 200
        finally:
            process.kill()


def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    for arguments, message in (
        ([str(tmp_path / "nowhere")], "no folder"),
        ([str(tmp_path), "--host", "198.51.100.7"], "cannot be listened on"),
        ([str(tmp_path), "--token", "short"], "at least 16 characters"),
    ):
        with started(*arguments) as process:
            assert process.stderr is not None
            text = process.stderr.read()
            assert process.wait(60) == 2
            assert text.startswith("error: ")
            assert message in text
            assert text.count("\n") == 1
