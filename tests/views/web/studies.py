"""Study folders for the tests of the page, written by the journal's own code."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from paceline.study import Event, Journal, write_settings
from tests.views.studies import EVENTS, SETTINGS


def write(folder: Path, events: Sequence[Event] = EVENTS) -> Path:
    """A study folder with these events."""
    write_settings(folder, SETTINGS, 4)
    append(folder, events)
    return folder


def append(folder: Path, events: Iterable[Event]) -> None:
    """More events, as a running study would write them."""
    with Journal(folder) as journal:
        for event in events:
            journal.append(event)
