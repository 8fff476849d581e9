"""What a strategy gets, a `History`, and what it returns, a `Decision`.

A strategy is a function of the history. It holds settings but no state, and uses no file, clock or training. The same
history always gives the same decision, so a study goes on after a crash as if nothing had happened.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import index
from typing import Any, ClassVar, Literal

import numpy as np

from paceline.errors import InputError
from paceline.study import BestState, Failure, Interval, Reason
from paceline.traces import LearningRateRange, Objective, Schedule, Trace

Keep = Literal["best", "last"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be tuned.

    Args:
        lr_range: bounds of the rate; of its peak, if a strategy tunes multipliers of a base.
        steps: length of one run.
        objective: whether small or large values are good, and of which weights they are.
        seed: of everything a strategy draws.
        tasks: names of the tasks, if a family of them is tuned.
        keep: "best" if the weights of the best moment of a run are wanted, "last" if those of its end are.
        early_stop: whether a study may end when nothing that is left can be expected to beat its best moment.
    """

    lr_range: LearningRateRange
    steps: int
    objective: Objective
    seed: int = 0
    tasks: tuple[str, ...] = ()
    keep: Keep = "last"
    early_stop: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "seed"):  # NumPy's integers become Python's, which go to JSON
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, index(value))
            except TypeError as error:
                raise InputError(f"{name} must be an int, got {value!r}: pass a whole number") from error
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}: it is the length of one run")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, got {self.seed}: pass 0, 1, 2, ...")
        if self.keep not in ("best", "last"):
            raise InputError(
                f'keep must be "best" or "last", got {self.keep!r}: "best" returns the weights of the best moment of '
                'the run, "last" those of its end'
            )


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """One fork so far: its schedule, what was observed of it, and whether it may go on.

    Args:
        id: its number.
        parent: the fork it was cloned from.
        start: the step at which it was cloned, or 0.
        schedule: its learning rate from step 0 of the run to the end of its latest interval.
        trace: what was observed, of the weights that the objective names.
        raw: what was observed of raw weights; the same as `trace` if the objective names them, or if nothing else was
            observed.
        averaged: what was observed of averaged weights, likewise.
        last_values: the values at the end of its latest report, by weights.
        final_means: means of the last five values of that report, by weights; of fewer if they are far apart.
        alive: whether it may go on.
        failure: how it failed.
        task: number of its task in a family.
        interval_start: the step at which its latest interval begins.
        best: the best moment of its run so far whose state was kept, if states are kept.
    """

    id: int
    parent: int | None
    start: int
    schedule: Schedule
    trace: Trace | None = None
    raw: Trace | None = None
    averaged: Trace | None = None
    last_values: dict[str, float] = field(default_factory=dict[str, float])
    final_means: dict[str, float] = field(default_factory=dict[str, float])
    alive: bool = True
    failure: Failure | None = None
    task: int = 0
    interval_start: int = 0
    best: BestState | None = None

    @property
    def multiplier(self) -> float:
        """The multiplier of the base that it runs at now; the rate itself if the base is constant."""
        return float(self.schedule.multipliers[-1])

    @property
    def origin(self) -> tuple[int, int]:
        """Fork and step of the state that its latest interval begins from; (m, 0) is where runs of task m begin."""
        if self.interval_start == 0:
            return self.task, 0
        is_first = self.parent is not None and self.interval_start == self.start
        return (self.parent if is_first and self.parent is not None else self.id), self.interval_start

    @property
    def final_value(self) -> float:
        """The value that it is judged by at the end: that of raw weights if observed, because people keep these."""
        return self.final_means.get("raw", self.recent())

    def recent(self, share: float = 0.0) -> float:
        """Its value now: its last observation, or the mean over the last `share` of those in its latest interval."""
        if self.trace is None:
            return np.nan
        count = max(1, round(share * np.sum(self.trace.steps > self.schedule.change_points[-2])))
        return float(np.mean(self.trace.values[-count:]))


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Everything that a strategy may use.

    Args:
        goal: what is to be tuned.
        forks: all forks, by number.
        round: how many decisions have been made.
    """

    goal: Goal
    forks: tuple[Fork, ...] = ()
    round: int = 0

    @property
    def best(self) -> BestState | None:
        """The best moment of all forks, dropped and failed ones too; None if no states are kept."""
        bests = [fork.best for fork in self.forks if fork.best is not None]
        return max(bests, key=lambda best: self.goal.objective.sign * best.value, default=None)

    @property
    def alive(self) -> list[Fork]:
        """Forks that can go on."""
        return [fork for fork in self.forks if fork.alive]

    def ranked(self, share: float = 0.0) -> list[Fork]:
        """Living forks, best first; `share` as in `Fork.recent`.

        Forks with equal values, such as accuracies before anything is learnt, are ordered by how far their rates lie
        from the middle of the bounds: forks with too low and with too high a rate are equally bad then.
        """
        sign, bounds = self.goal.objective.sign, self.goal.lr_range

        def distance_from_middle(fork: Fork) -> float:
            return round(abs(float(np.log(fork.multiplier**2 / (bounds.low * bounds.high)))), 9)

        return sorted(self.alive, key=lambda fork: (-sign * fork.recent(share), distance_from_middle(fork), fork.id))

    def traces(self) -> list[Trace]:
        """The traces of all forks that have observations."""
        return [fork.trace for fork in self.forks if fork.trace is not None]

    def fork(self, number: int) -> Fork:
        """The fork with this number."""
        at = bisect_left(self.forks, number, key=lambda fork: fork.id)
        if at == len(self.forks) or self.forks[at].id != number:
            raise InputError(f"expected one of the forks {[fork.id for fork in self.forks]}, got {number}")
        return self.forks[at]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What to do next.

    Args:
        intervals: what to train; none means that the study is over.
        drops: forks that will not go on, each with the reason.
        winner: the fork that won, if the study is over and one did.
        reasons: why, most important first. A sentence of your own can stand in for a `Reason`.
        details: numbers for views (docs/journal.md).
    """

    intervals: tuple[Interval, ...] = ()
    drops: "tuple[tuple[int, Reason | str], ...]" = ()
    winner: int | None = None
    reasons: "tuple[Reason | str, ...]" = ()
    details: dict[str, Any] = field(default_factory=dict[str, Any])


class Strategy(ABC):
    """How to tune a run, or a family of tasks.

    Attributes:
        restarts: whether it may begin runs from step 0 later in a study, so that the first state is kept.
        families: whether it tunes a family of tasks, not one run.
    """

    restarts: ClassVar[bool] = False
    families: ClassVar[bool] = False

    @abstractmethod
    def propose(self, history: History) -> Decision:
        """The next decision, given everything so far. It is called once all intervals have been reported on."""

    @abstractmethod
    def total_steps(self, goal: Goal) -> int:
        """The most steps that all forks together will take."""

    def planned_intervals(self, goal: Goal) -> list[tuple[int, int, int]]:
        """How many forks are to train from which step to which, as far as that is known before the start."""
        return [(max(1, round(self.total_steps(goal) / goal.steps)), 0, goal.steps)]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""

    def as_begun(self, settings: dict[str, Any]) -> "Strategy":
        """This strategy as an earlier version began a study, whose settings are given; by default the strategy itself.

        Override it if defaults have changed since: a study goes on as it was begun.
        """
        return self

    def objective(self, objective: Objective) -> Objective:
        """The objective that this strategy uses; override it to use other weights, or a transform of the value."""
        return objective
