"""What happened: a study folder with an append-only journal."""

from paceline.study.answers import BestRun, TaskAnswer
from paceline.study.events import (
    Cloned,
    Created,
    Decided,
    Dropped,
    Event,
    Failed,
    Finished,
    Observed,
    Proposed,
)
from paceline.study.journal import Journal, read_journal
from paceline.study.study import Study

__all__ = [
    "BestRun",
    "Cloned",
    "Created",
    "Decided",
    "Dropped",
    "Event",
    "Failed",
    "Finished",
    "Journal",
    "Observed",
    "Proposed",
    "Study",
    "TaskAnswer",
    "read_journal",
]
