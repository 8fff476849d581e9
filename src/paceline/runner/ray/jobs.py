"""Intervals on a cluster: what is to be run, who is at it, and how long it may take."""

import statistics
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from paceline.runner.ray.pool import Member
from paceline.study import Interval, Report

LEAST = 5.0  # seconds below which no interval is slow


class Pace:
    """How long intervals take, and how long one may take before it counts as slow.

    Args:
        patience: times the median, per step, of all that were finished.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._taken: list[float] = []

    def note(self, seconds: float, steps: int) -> None:
        """An interval was finished."""
        self._taken.append(seconds / max(steps, 1))

    def allows(self, seconds: float, steps: int) -> bool:
        """Whether an interval may well take that long."""
        if not self._taken or seconds < LEAST:
            return True
        return seconds < self.patience * max(steps, 1) * statistics.median(self._taken)


class Second(Enum):
    """How far a second attempt at an interval has got."""

    NONE = auto()
    REQUESTED = auto()
    BEGUN = auto()


@dataclass(eq=False)
class Job:
    """An interval to be trained, or without one, the untrained run of a task."""

    interval: Interval | None
    origin: Path | None
    target: Path
    task: int = 0
    crashes: int = 0
    told: int = 0
    second: Second = Second.NONE

    @property
    def is_clone(self) -> bool:
        """Whether it begins from another fork's state."""
        return self.interval is not None and self.interval.parent is not None


@dataclass(eq=False)
class Attempt:
    """A worker at an interval, until its report and its state are there."""

    job: Job
    member: Member
    began: float
    report: Report | None = None
