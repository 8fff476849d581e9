"""`paceline serve`. The server itself is tested in tests/views/web."""

from pathlib import Path
from typing import Any

import pytest

from paceline import views
from paceline.cli import serve_command
from tests.cli.command_line import call, refused


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server was started with, in place of a server."""
    given: dict[str, Any] = {}

    def serve_studies(studies: list[Path], **settings: Any) -> None:
        given.update(studies=studies, **settings)

    monkeypatch.setattr(views, "serve_studies", serve_studies, raising=False)
    return given


def test_the_options_reach_the_server_and_its_end_is_that_of_ctrl_c(served: dict[str, Any]) -> None:
    done = call("serve", "runs", "more", "--host", "0.0.0.0", "--port", "0", "--token", "secret")
    assert done.exit_code == 130
    assert served["studies"] == [Path("runs"), Path("more")]
    assert (served["host"], served["port"], served["token"]) == ("0.0.0.0", 0, "secret")


def test_by_default_it_is_for_this_machine_alone(served: dict[str, Any]) -> None:
    call("serve", "runs")
    assert (served["host"], served["port"], served["token"]) == ("127.0.0.1", 8787, None)


def test_missing_packages_are_named(served: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None if name == "uvicorn" else object())
    refused(call("serve", "runs"), r"serve needs uvicorn, not installed here: pip install 'paceline\[web\]'")
    assert served == {}
