"""Hooks of the user and default messages are called side by side."""

import logging
from pathlib import Path

import pytest

from paceline import tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Event


def test_messages_come_beside_the_users_hooks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="paceline")
    events, steps = list[Event](), list[tuple[int, int]]()
    settings = {"steps": 400, "lr": (1e-3, 1.0), "cost": 1.5, "study": tmp_path / "a"}
    tune(
        lambda: QuadraticTraining(Quadratic()),
        on_event=events.append,
        on_step=lambda fork, step: steps.append((fork, step)),
        **settings,
    )
    assert events[-1].kind == "finished"
    assert steps
    assert caplog.messages[0].startswith("8 forks at first, rates from 0.001 to 1; ")
    assert sum(message.startswith("decision ") for message in caplog.messages) == sum(
        event.kind == "decided" for event in events
    )
    caplog.clear()
    tune(lambda: QuadraticTraining(Quadratic()), **settings)
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'a'} is finished, nothing was run: fork ")
    assert message.endswith("; choose another folder to tune again")


def test_a_quiet_study_says_nothing(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.INFO, logger="paceline")
    tune(lambda: QuadraticTraining(Quadratic()), steps=400, lr=(1e-3, 1.0), cost=1.5, quiet=True)
    assert not caplog.messages
    assert capsys.readouterr() == ("", "")


def test_without_logging_of_its_own_a_program_prints_to_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("paceline"), "propagate", False)
    tune(lambda: QuadraticTraining(Quadratic()), steps=400, lr=(1e-3, 1.0), cost=1.5)
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith("paceline: 8 forks at first")
    assert printed.err.rstrip().splitlines()[-1].startswith("paceline: fork ")
