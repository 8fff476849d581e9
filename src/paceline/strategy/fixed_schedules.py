"""Schedules that are fixed before the run: one, a grid of them, or a random search. The demo compares with these."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Shape
from paceline.strategy.base import Decision, Goal, History, Strategy
from paceline.study import Interval, because
from paceline.traces import Objective, Schedule


@dataclass(frozen=True, slots=True)
class FixedSchedules(Strategy):
    """Full runs under fixed schedules, the best one wins: a grid, a random search, or the user's own list.

    Args:
        bases: shapes, tried in turn.
        runs: how many runs.
        search: "grid" spreads peaks over the bounds, "random" draws them (log-uniformly) and the shape.
        peaks: the peaks themselves, in place of a search.
        intervals: how often runs are saved on the way, so that a study that is cut off loses little; nothing is decided
            there.
    """

    bases: tuple[Shape, ...]
    runs: int = 1
    search: Literal["grid", "random"] = "grid"
    peaks: tuple[float, ...] = ()
    intervals: int = 10

    def __post_init__(self) -> None:
        if self.runs < 1 or not self.bases:
            raise InputError(f"expected at least one run of at least one base, got {self.runs} of {len(self.bases)}")
        if self.intervals < 1:
            raise InputError(f"intervals must be at least 1, got {self.intervals}: runs are saved at the end of each")

    def objective(self, objective: Objective) -> Objective:
        """Runs are judged by the raw weights that a user would keep."""
        return Objective(objective.mode, "identity", "raw")

    def total_steps(self, goal: Goal) -> int:
        """Full runs."""
        return self.runs * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        bases = [base.to_json() for base in self.bases]
        others = {name: getattr(self, name) for name in ("runs", "search", "peaks", "intervals")}
        return {"strategy": "fixed", "bases": bases, **others}

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
        goal, done = history.goal, history.round
        points = np.linspace(0, goal.steps, min(self.intervals, goal.steps) + 1).astype(int).tolist()
        if not history.forks:
            schedules = [Schedule(s.multipliers, [0, points[1]], s.steps, s.base) for s in self.schedules(goal)]
            intervals = tuple(Interval(i, None, 0, points[1], s, 1) for i, s in enumerate(schedules))
            return Decision(intervals, reasons=(because("start", rates=[s.multipliers[0] for s in schedules]),))
        ranked = history.ranked()
        if not ranked:
            return Decision(reasons=(because("every run failed"),))
        if done < len(points) - 1:
            start, stop = points[done : done + 2]
            going = sorted(ranked, key=lambda fork: fork.id)
            intervals = tuple(
                Interval(f.id, None, start, stop, f.schedule.extend(f.multiplier, stop), done + 1) for f in going
            )
            return Decision(intervals, reasons=(because("runs go on", runs=len(going)),))
        return Decision(
            winner=ranked[0].id, reasons=(because("ended best", fork=ranked[0].id, value=ranked[0].recent()),)
        )
