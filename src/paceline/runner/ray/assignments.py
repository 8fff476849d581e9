"""What workers are given to do, and their attempts at it."""

from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from paceline.runner.ray.pool import WorkerHandle
from paceline.study import Checkpoints, Interval, KeepRule, Report


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
        rule: which observations are so good that their state is kept; None for none.
        crashes: workers that died at it, without their node.
        last_step: the last step that was passed to `on_step`.
        second_attempt: whether it has got a second worker.
        unsaved: what to wait for until its states are safe.
    """

    interval: Interval | None
    origin: Path | None
    target: Path
    task: int = 0
    rule: KeepRule | None = None
    crashes: int = 0
    last_step: int = 0
    second_attempt: SecondAttempt = SecondAttempt.NONE
    unsaved: set[Any] = field(default_factory=set[Any])

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
        states: references to the states that have come after the report.
    """

    assignment: Assignment
    worker: WorkerHandle
    started: float
    report: Report | None = None
    states: list[Any] = field(default_factory=list[Any])

    @property
    def targets(self) -> list[Path]:
        """The checkpoints of the states that follow its report: that of its end, and that of its best moment."""
        report, target = self.report, self.assignment.target
        if report is None:
            return []
        end = [] if report.failure is not None else [target]
        if not sends_best(report):
            return end
        assert report.kept is not None
        return [*end, Checkpoints(target.parent).path(report.fork, report.kept)]


def sends_best(report: Report) -> bool:
    """Whether the state of its best moment is another than those of the interval's ends."""
    return report.kept not in (None, 0) and (report.kept != report.stop or report.failure is not None)
