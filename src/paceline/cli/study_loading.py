"""Load studies for commands, and print how to continue one that was stopped."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.application import print_line

if TYPE_CHECKING:
    from paceline.study import Event
    from paceline.views import StudyView


def load_view(study: Path) -> "StudyView":
    """A study so far. It may still be running."""
    from paceline.views import study_view

    return study_view(load_events(study))


def load_events(study: Path) -> "tuple[Event, ...]":
    """The events of a study. If it was stopped before the first one, an event with its settings."""
    from paceline.study import Created, Study

    loaded = Study.open(study)
    return loaded.events or (Created(loaded.settings),)


def journal_view(folder: Path) -> "StudyView":
    """What the journal in a folder holds. It is empty if there is no journal yet."""
    from paceline.study import read_journal
    from paceline.views import study_view

    return study_view(read_journal(folder / "journal.jsonl"))


def print_how_to_continue(folder: Path) -> None:
    """After Ctrl-C: print what is kept, and the command that continues."""
    from paceline.views import format_progress

    program = "python -m paceline" if Path(sys.argv[0]).name == "__main__.py" else "paceline"
    view = journal_view(folder)
    progress = (
        f"after {format_progress(view)}; all of them are kept in {folder}" if view.settings else "before the first step"
    )
    print_line(f"\nstopped {progress}")
    print_line(f"continue with: {program} {shlex.join(sys.argv[1:])}")
