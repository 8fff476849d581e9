"""Population based training: a population of forks runs to the end, and the best replace the worst.

`Population` is what PBT and PB2 (`benchmarks.peers.pb2`) share. They differ in the rate that a clone gets.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Constant
from paceline.strategy import Decision, Fork, Goal, History, Strategy
from paceline.study import Interval, Reason, as_reason, because
from paceline.traces import Objective, Schedule


@dataclass(frozen=True, slots=True)
class Population(Strategy):
    """A population that exploits (the worst clone the best) and explores (clones get rates of their own).

    Args:
        forks: size of the population, which runs to the end.
        intervals: how often it exploits and explores.
        share: of the population that is replaced, at least one.
    """

    name: ClassVar[str]
    forks: int = 5
    intervals: int = 20
    share: float = 0.2

    def __post_init__(self) -> None:
        if self.forks < 1 or self.intervals < 1 or not 0 < self.share <= 0.5:
            raise InputError(
                "expected at least one fork and one interval, and a share in (0, 0.5], "
                f"got {self.forks}, {self.intervals} and {self.share}"
            )

    @abstractmethod
    def explore(
        self, history: History, parents: Sequence[Fork], remaining: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """The rate of a clone of each parent, and why, given the forks that go on as they are."""

    def objective(self, objective: Objective) -> Objective:
        """As published: the value now."""
        return Objective(objective.mode, "identity", "raw")

    def total_steps(self, goal: Goal) -> int:
        """The whole population, to the end."""
        return self.forks * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {"strategy": self.name, **{name: getattr(self, name) for name in [field.name for field in fields(self)]}}

    def propose(self, history: History) -> Decision:
        """Start at random, exploit and explore, end."""
        goal = history.goal
        points = interval_borders(goal.steps, self.intervals)
        rng = np.random.default_rng([goal.seed, 2, history.round])
        if not history.forks:
            rates = goal.lr_range.from_unit(rng.uniform(size=self.forks))
            intervals = tuple(
                Interval(i, None, 0, points[1], Schedule([r], [0, points[1]], goal.steps, Constant()), 1)
                for i, r in enumerate(rates)
            )
            return Decision(intervals, reasons=(because("start", rates=rates.tolist()),))
        ranked = history.ranked()
        if not ranked:
            return Decision(reasons=(as_reason("every fork failed: lower the upper bound of the rate"),))
        if history.round >= self.intervals:
            return Decision(
                winner=ranked[0].id, reasons=(because("ended best", fork=ranked[0].id, value=ranked[0].recent()),)
            )
        return self._exploit(history, ranked, points[history.round + 1], rng)

    def _exploit(self, history: History, ranked: list[Fork], stop: int, rng: np.random.Generator) -> Decision:
        """The best go on; the worst, and those that failed, become clones of the best."""
        start, number = int(ranked[0].schedule.change_points[-1]), history.round + 1
        replaced = max(1, round(self.share * self.forks)) if self.forks > 1 else 0
        remaining, best = ranked[: self.forks - replaced], ranked[: max(1, replaced)]
        parents = [best[int(rng.integers(len(best)))] for _ in range(self.forks - len(remaining))]
        intervals = [
            Interval(f.id, None, start, stop, f.schedule.extend(f.multiplier, stop), number) for f in remaining
        ]
        fresh, reasons = max(fork.id for fork in history.forks) + 1, list[Reason]()
        for i, (parent, (rate, why)) in enumerate(
            zip(parents, self.explore(history, parents, remaining, rng), strict=True)
        ):
            schedule = parent.schedule.extend(rate, stop)
            intervals.append(Interval(fresh + i, parent.id, start, stop, schedule, number))
            reasons.append(because("clone", fork=fresh + i, parent=parent.id, rate=rate, why=as_reason(why)))
        drops = tuple((fork.id, because("behind", value=fork.recent())) for fork in ranked[len(remaining) :])
        return Decision(tuple(intervals), drops, reasons=tuple(reasons) or (as_reason("the only fork goes on"),))


@dataclass(frozen=True, slots=True)
class PopulationBasedTraining(Population):
    """Population based training (Jaderberg et al. 2017, "Population based training of neural networks").

    As published: truncation selection (the worst 20 % copy weights and rate of one of the best 20 %, drawn evenly),
    then the rate is multiplied by 0.8 or 1.25.

    Args:
        factors: the perturbations.
    """

    name: ClassVar[str] = "pbt"
    factors: tuple[float, float] = (0.8, 1.25)

    def explore(
        self, history: History, parents: Sequence[Fork], remaining: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """Perturb."""
        factors = [self.factors[int(rng.integers(2))] for _ in parents]
        low, high = history.goal.lr_range.low, history.goal.lr_range.high
        return [
            (float(np.clip(parent.multiplier * factor, low, high)), f"{factor} times its rate")
            for parent, factor in zip(parents, factors, strict=True)
        ]


def interval_borders(steps: int, intervals: int) -> list[int]:
    """The steps at which intervals of equal length begin and end."""
    points = [round(k * steps / intervals) for k in range(intervals + 1)]
    if any(b <= a for a, b in pairwise(points)):
        raise InputError(f"{steps:,} steps are too few for {intervals} intervals: train longer or use fewer intervals")
    return points
