"""Schedules that are fixed before the run: what most people use, alone, in a grid or in a random search."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paceline.errors import InputError
from paceline.strategy.base import Decision, Goal, History, Proposal, Strategy
from paceline.traces import Objective, Schedule, Shape


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
        return Objective(objective.mode, "identity", "raw")

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
