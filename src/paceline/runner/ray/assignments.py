"""What workers are given to do, and their attempts at it."""

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from paceline.runner.ray.pool import WorkerHandle
from paceline.study import Interval, Report


class SecondAttempt(Enum):
    """Whether a slow interval has got a second worker."""

    NONE = auto()
    REQUESTED = auto()
    STARTED = auto()


@dataclass(eq=False)
class Assignment:
    """An interval to train, or the initial state of a task to save.

    Args:
        interval: the interval; None for an initial state.
        origin: the checkpoint that the interval begins from.
        target: the checkpoint that comes of it.
        task: number of the task.
        crashes: workers that died at it, without their node.
        last_step: the last step that was passed to `on_step`.
        second_attempt: whether it has got a second worker.
    """

    interval: Interval | None
    origin: Path | None
    target: Path
    task: int = 0
    crashes: int = 0
    last_step: int = 0
    second_attempt: SecondAttempt = SecondAttempt.NONE

    @property
    def is_clone(self) -> bool:
        """Whether it begins from another fork's state."""
        return self.interval is not None and self.interval.parent is not None

    @property
    def steps(self) -> int:
        """Steps to train."""
        return 0 if self.interval is None else self.interval.stop - self.interval.start


@dataclass(eq=False)
class Attempt:
    """A worker at an assignment, until its report and its state have come.

    Args:
        assignment: what it was given.
        worker: the worker.
        started: when, in seconds of the monotonic clock.
        report: its report, once it has come.
    """

    assignment: Assignment
    worker: WorkerHandle
    started: float
    report: Report | None = None
