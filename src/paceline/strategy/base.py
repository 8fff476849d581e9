"""What a strategy sees and what it answers.

A strategy is a function of the history: it holds settings, no state, and touches no file, clock or training. The same
history gives the same decision, which is what makes a study continue after a crash as if nothing had happened.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.traces import LearningRateRange, Objective, Schedule, Trace


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be tuned.

    Args:
        lr_range: bounds of the rate (of the peak, where a strategy tunes multipliers of a base).
        steps: length of one run.
        objective: how values are read.
        seed: of everything a strategy draws.
        tasks: names of the tasks, where a family of them is tuned.
    """

    lr_range: LearningRateRange
    steps: int
    objective: Objective
    seed: int = 0
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("steps", "seed"):  # numpy's whole numbers too, as plain ones that go to JSON
            try:
                object.__setattr__(self, name, index(getattr(self, name)))
            except TypeError as error:
                given = getattr(self, name)
                raise InputError(f"{name} must be an int, got {given!r}: pass a whole number") from error
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}: it is the length of one run")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, got {self.seed}: pass 0, 1, 2, ...")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Run `fork` from step `start` to step `stop` at the rates of `schedule`.

    A `parent` means: begin as a clone of that fork's state at `start`. Without one the fork goes on, or begins anew.
    `task` is the number of its task in a family.
    """

    fork: int
    parent: int | None
    start: int
    stop: int
    schedule: Schedule
    round: int
    task: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """One fork so far: its schedule, what it observed itself, and whether it lives.

    `trace` is of the weights the objective reads, `raw` of raw weights where these were observed. `last` holds its last
    values, raw and averaged, and `closing` the means of its last five. `began` is where its last stretch was begun.
    """

    id: int
    parent: int | None
    start: int
    schedule: Schedule
    trace: Trace | None = None
    raw: Trace | None = None
    last: dict[str, float] = field(default_factory=dict[str, float])
    closing: dict[str, float] = field(default_factory=dict[str, float])
    alive: bool = True
    failure: str = ""
    task: int = 0
    began: int = 0

    @property
    def multiplier(self) -> float:
        """The multiplier (the rate, on a constant base) it runs at now."""
        return float(self.schedule.multipliers[-1])

    @property
    def origin(self) -> tuple[int, int]:
        """Fork and step of the state that its last stretch began from; (m, 0) is where runs of task m begin."""
        if self.began == 0:
            return self.task, 0
        return (self.parent if self.parent is not None and self.began == self.start else self.id), self.began

    @property
    def final(self) -> float:
        """What it is judged by at the end: of raw weights where they were observed, since people keep these."""
        return self.closing.get("raw", self.recent())

    def recent(self, share: float = 0.0) -> float:
        """Its value now: the last observation, or the mean over the last `share` of those of its last interval."""
        if self.trace is None:
            return np.nan
        count = max(1, round(share * np.sum(self.trace.steps > self.schedule.change_points[-2])))
        return float(np.mean(self.trace.values[-count:]))


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Everything a strategy may know."""

    goal: Goal
    forks: tuple[Fork, ...] = ()
    round: int = 0

    @property
    def alive(self) -> list[Fork]:
        """Forks that can go on."""
        return [fork for fork in self.forks if fork.alive]

    def ranked(self, share: float = 0.0) -> list[Fork]:
        """Living forks, best first.

        Equal ones, as an accuracy has before anything is learnt, by how far their rates lie from the middle of the
        bounds: both those too low and those too high to learn anything look alike.
        """
        sign, bounds = self.goal.objective.sign, self.goal.lr_range

        def off_middle(fork: Fork) -> float:
            return round(abs(float(np.log(fork.multiplier**2 / (bounds.low * bounds.high)))), 9)

        return sorted(self.alive, key=lambda fork: (-sign * fork.recent(share), off_middle(fork), fork.id))

    def traces(self) -> list[Trace]:
        """What was observed, fork by fork."""
        return [fork.trace for fork in self.forks if fork.trace is not None]

    def fork(self, number: int) -> Fork:
        """The fork of this number."""
        known = {fork.id: fork for fork in self.forks}
        if number not in known:
            raise InputError(f"expected one of the forks {sorted(known)}, got {number}")
        return known[number]

    def with_fork(self, fork: Fork) -> "History":
        """The history with a fork added, or replaced by its number."""
        others = [known for known in self.forks if known.id != fork.id]
        return replace(self, forks=tuple(sorted([*others, fork], key=lambda known: known.id)))


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What to do next.

    Args:
        proposals: what to run; none means the study is over.
        drops: forks that will not go on, with the reason.
        winner: the fork that won, where the study is over.
        reasons: in words.
        details: what a view needs (docs/journal.md).
    """

    proposals: tuple[Proposal, ...] = ()
    drops: tuple[tuple[int, str], ...] = ()
    winner: int | None = None
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict[str, Any])


class Strategy(ABC):
    """How to tune one run; `restarts` says that it may begin from step 0 again later, so that state is kept.

    `families` says that it tunes a family of tasks in place of one run.
    """

    restarts: ClassVar[bool] = False
    families: ClassVar[bool] = False

    @abstractmethod
    def propose(self, history: History) -> Decision:
        """The next decision, given everything so far; called when every open proposal has been reported on."""

    @abstractmethod
    def total_steps(self, goal: Goal) -> int:
        """The most steps that all forks together will take."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""

    def objective(self, objective: Objective) -> Objective:
        """The objective as this strategy reads it; strategies that model a transform of the value override it."""
        return objective
