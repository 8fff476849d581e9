"""Studies as commands read them, and what is said of one that was stopped."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.app import say

if TYPE_CHECKING:
    from paceline.study import Event
    from paceline.views.data import StudyView


def done(folder: Path) -> "StudyView":
    """What the journal of a study holds, nothing where there is none yet."""
    from paceline.study import read_journal
    from paceline.views.study_view import study_view

    return study_view(read_journal(folder / "journal.jsonl"))


def opened(study: Path) -> "StudyView":
    """A study as it stands, also one that is running."""
    from paceline.views.study_view import study_view

    return study_view(happened(study))


def happened(study: Path) -> "tuple[Event, ...]":
    """The events of a study; of one that was stopped before the first was written, what it was asked for."""
    from paceline.study import Created, Study

    found = Study.open(study)
    return found.events or (Created(found.settings),)


def say_how_to_continue(folder: Path) -> None:
    """After Ctrl-C: what is kept, and the command that goes on."""
    from paceline.views.format import format_progress

    program = "python -m paceline" if Path(sys.argv[0]).name == "__main__.py" else "paceline"
    so_far = done(folder)
    kept = (
        f"after {format_progress(so_far)}; all of them are kept in {folder}"
        if so_far.settings
        else "before the first step"
    )
    say(f"\nstopped {kept}")
    say(f"continue with: {program} {shlex.join(sys.argv[1:])}")
