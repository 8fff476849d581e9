"""What people use instead, behind the same interface, so that it runs through the same loop, journal and views."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paceline.errors import InputError
from paceline.strategy.base import Decision, Goal, History, Proposal, Strategy
from paceline.traces import Constant, Objective, Schedule, Shape


@dataclass(frozen=True, slots=True)
class FixedSchedules(Strategy):
    """Full runs under fixed schedules, the best one wins: a grid, a random search, or the user's own list.

    Args:
        bases: shapes, tried in turn.
        runs: how many runs.
        search: "grid" spreads peaks over the bounds, "random" draws them (log-uniformly) and the shape.
        peaks: the peaks themselves, in place of a search.
    """

    bases: tuple[Shape, ...]
    runs: int = 1
    search: Literal["grid", "random"] = "grid"
    peaks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.runs < 1 or not self.bases:
            raise InputError(f"expected at least one run of at least one base, got {self.runs} of {len(self.bases)}")

    def objective(self, objective: Objective) -> Objective:
        """Runs are judged by the raw weights that a user would keep."""
        return Objective(objective.mode, "identity", "raw", objective.every)

    def total_steps(self, goal: Goal) -> int:
        """Full runs."""
        return self.runs * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        bases = [base.to_json() for base in self.bases]
        return {"strategy": "fixed", "bases": bases, "runs": self.runs, "search": self.search, "peaks": self.peaks}

    def schedules(self, goal: Goal) -> list[Schedule]:
        """The schedules that are run."""
        rng = np.random.default_rng([goal.seed, 1])
        if self.peaks:
            units = goal.lr_range.to_unit(np.resize(self.peaks, self.runs))
        elif self.search == "random":
            units = rng.uniform(size=self.runs)
        else:
            units = (np.arange(self.runs) + 0.5) / self.runs
        picks = rng.integers(len(self.bases), size=self.runs) if self.search == "random" else np.arange(self.runs)
        bases = [self.bases[int(i) % len(self.bases)] for i in picks]
        peaks = goal.lr_range.from_unit(units)
        return [Schedule.of(base, float(peak), goal.steps) for base, peak in zip(bases, peaks, strict=True)]

    def propose(self, history: History) -> Decision:
        """All runs at once, then the best."""
        goal = history.goal
        if not history.forks:
            schedules = self.schedules(goal)
            proposals = tuple(Proposal(i, None, 0, goal.steps, s, 1) for i, s in enumerate(schedules))
            return Decision(proposals, reasons=(f"{len(proposals)} runs under fixed schedules",))
        ranked = history.ranked()
        if not ranked:
            return Decision(reasons=("every run failed: lower the upper bound of the rate",))
        return Decision(winner=ranked[0].id, reasons=(f"run {ranked[0].id} ended best, at {ranked[0].recent():.6g}",))


@dataclass(frozen=True, slots=True)
class PopulationBasedTraining(Strategy):
    """Population based training (Jaderberg et al. 2017): the worst quarter clones the best quarter and perturbs.

    Args:
        forks: size of the population, which runs to the end.
        intervals: how often it exploits and explores.
        factors: the perturbations.
        share: of the population that is replaced, at least one.
    """

    forks: int = 5
    intervals: int = 20
    factors: tuple[float, float] = (0.8, 1.25)
    share: float = 0.25

    def objective(self, objective: Objective) -> Objective:
        """As published: the value now."""
        return Objective(objective.mode, "identity", "raw", objective.every)

    def total_steps(self, goal: Goal) -> int:
        """The whole population, to the end."""
        return self.forks * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        settings = {name: getattr(self, name) for name in ("forks", "intervals", "factors", "share")}
        return {"strategy": "pbt", **settings}

    def propose(self, history: History) -> Decision:
        """Start at random, exploit and explore, end."""
        goal = history.goal
        points = [round(k * goal.steps / self.intervals) for k in range(self.intervals + 1)]
        rng = np.random.default_rng([goal.seed, 2, history.round])
        if not history.forks:
            rates = goal.lr_range.from_unit(rng.uniform(size=self.forks))
            proposals = tuple(
                Proposal(i, None, 0, points[1], Schedule([r], [0, points[1]], goal.steps, Constant()), 1)
                for i, r in enumerate(rates)
            )
            return Decision(proposals, reasons=(f"a population of {self.forks} at random rates",))
        ranked = history.ranked()
        if not ranked or history.round >= self.intervals:
            winner = ranked[0].id if ranked else None
            return Decision(winner=winner, reasons=("the population is at its end" if ranked else "every fork failed",))
        start, stop = points[history.round], points[history.round + 1]
        replaced = max(1, round(self.share * self.forks)) if self.forks > 1 else 0
        kept, best = ranked[: self.forks - replaced], ranked[: max(1, replaced)]
        proposals = [
            Proposal(f.id, None, start, stop, f.schedule.extend(f.multiplier, stop), history.round + 1) for f in kept
        ]
        fresh, reasons = max(fork.id for fork in history.forks) + 1, list[str]()
        for i in range(self.forks - len(kept)):
            parent, factor = best[int(rng.integers(len(best)))], self.factors[int(rng.integers(2))]
            rate = float(np.clip(parent.multiplier * factor, goal.lr_range.low, goal.lr_range.high))
            schedule = parent.schedule.extend(rate, stop)
            proposals.append(Proposal(fresh + i, parent.id, start, stop, schedule, history.round + 1))
            reasons.append(f"fork {fresh + i} begins as a clone of fork {parent.id}, at {factor} times its rate")
        going = {p.fork for p in proposals}
        drops = tuple((fork.id, "among the worst of the population") for fork in ranked if fork.id not in going)
        return Decision(tuple(proposals), drops, reasons=tuple(reasons))
