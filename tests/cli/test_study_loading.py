import sys
from pathlib import Path

import pytest

from paceline.cli.study_loading import journal_view, load_events, load_view, print_how_to_continue
from paceline.study import Created, Study


def test_a_study_is_loaded_with_all_of_its_events(finished: Path) -> None:
    assert load_events(finished / "study") == Study.open(finished / "study").events
    assert load_view(finished / "study").finished is not None
    assert journal_view(finished / "study").forks == load_view(finished / "study").forks


def test_without_a_journal_there_are_the_settings(finished: Path) -> None:
    (finished / "study" / "journal.jsonl").unlink()
    (event,) = load_events(finished / "study")
    assert isinstance(event, Created)
    assert event.settings["steps"] == 200
    assert load_view(finished / "study").steps == 200
    assert journal_view(finished / "study").settings == {}


@pytest.mark.parametrize(
    ("program", "name"), [("/usr/bin/paceline", "paceline"), ("x/__main__.py", "python -m paceline")]
)
def test_the_command_that_continues_is_printed(
    program: str, name: str, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "tune", "train:make", "--study", "my runs"])
    print_how_to_continue(finished / "study")
    first, second = capsys.readouterr().err.split("\n")[1:3]
    assert first == f"stopped after 300 of 300 steps (100 %); all of them are kept in {finished / 'study'}"
    assert second == f"continue with: {name} tune train:make --study 'my runs'"
    print_how_to_continue(finished / "nothing")
    assert "stopped before the first step" in capsys.readouterr().err
