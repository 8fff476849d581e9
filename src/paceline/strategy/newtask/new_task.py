"""A new task of a known family (paper, section 4.4), and the step that the paper left open.

`universal` runs the schedule that is best on average over where the task may lie. `probe` spends the first intervals on
learning where it lies, then runs what is best given that. `dynamic` plans the rest of the run anew at every change
point, from the present value and from all observations: either as if the task lay at its most probable location (the
paper's recipe), or averaged over its location (ours).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.model import TaskPosterior, TraceModel, location_prior_of
from paceline.settings import NewTaskSettings
from paceline.strategy.base import Decision, Fork, Goal, History, Strategy
from paceline.strategy.multitask import Answer, Family, Space
from paceline.strategy.newtask.cold_start import (
    below_tested,
    cold_forks,
    decide_cold,
    other_loss,
    shows_something,
    unsuitable_rate,
    wasted_interval,
)
from paceline.strategy.newtask.location import location_details, location_reason
from paceline.strategy.newtask.planner import Continuation, RunPlanner, planned_rates
from paceline.strategy.newtask.rate_limit import RateLimit
from paceline.strategy.rollback import with_rollback
from paceline.strategy.single_run import SINGLE_RUN, range_test_steps
from paceline.study import Interval, Reason, because
from paceline.traces import Objective, Schedule, Trace

FAMILY_FIELDS = ("intervals", "base", "dims", "link", "order", "summed_rate", "end_share", "at")  # what its model needs
ALPHAS_OF_0_1_0 = (0.7, 0.3)
OFF: dict[str, Any] = {"cold_start": False, "statistic": "quantile"}  # what journals of 0.1.0 lack
MIN_RATE_GAP = 0.05  # between the rates of forks, in [0, 1] of the bounds


@dataclass(frozen=True, slots=True, eq=False)
class NewTask(Strategy):
    """Tune a run of a task that is new to a family.

    Args:
        family: the family; its schedules are searched.
        known_runs: its runs.
        model: fitted to them.
        task: name of the new task.
        settings: how it is tuned.
    """

    restarts: ClassVar[bool] = True

    family: Family
    known_runs: tuple[Trace, ...]
    model: TraceModel
    task: str = "new"
    settings: NewTaskSettings = field(default_factory=NewTaskSettings)

    @classmethod
    def of(
        cls, family: Family, known_runs: Sequence[Trace], task: str = "new", settings: NewTaskSettings | None = None
    ) -> "NewTask":
        """Fit the family's model, and begin from it."""
        return cls(family, tuple(known_runs), family.fit(known_runs), task, settings or NewTaskSettings())

    def __post_init__(self) -> None:
        if self.task in self.model.encoder.tasks:
            raise InputError(
                f"{self.task!r} is a task of the family, expected a new name: pass another, or run its own schedule"
            )
        if self.probe_intervals >= self.space.intervals:
            raise InputError(
                f"a probe takes 0 to {self.space.intervals - 1} of the {self.space.intervals} intervals, got "
                f"{self.settings.probe} steps: leave some intervals to use what it shows"
            )
        location_prior_of(self.settings.prior, self.model)

    @property
    def space(self) -> Space:
        """The schedules searched."""
        return self.family.space

    @property
    def probe_intervals(self) -> int:
        """How many intervals the probe takes: its steps, rounded up."""
        return int(np.searchsorted(self.space.change_points, self.settings.probe))

    def objective(self, objective: Objective) -> Objective:
        """The family's: its model reads nothing else."""
        return self.model.encoder.segmenter.objective

    def total_steps(self, goal: Goal) -> int:
        """The range test, and all forks to the end; a single run may repeat an interval that failed, if only one."""
        longest, forks = int(np.diff(self.space.change_points).max()), self.settings.forks
        if goal.steps != self.space.steps:
            raise InputError(
                f"the family's runs take {self.space.steps:,} steps, got steps={goal.steps}: leave steps= out, or make "
                "a family of that length"
            )
        return self._test_steps + goal.steps * forks + (longest if forks == 1 else 0)

    @property
    def _test_steps(self) -> int:
        return range_test_steps(self.space.steps) if self._begins_cold else 0

    @property
    def _begins_cold(self) -> bool:
        """Whether there is a range test: there may be a probe in its place, or a run may be too short for it."""
        return self.settings.cold_start and not self.probe_intervals and self.space.steps >= SINGLE_RUN.min_steps

    def plan(self, seed: int = 0) -> Answer:
        """The schedule from what is known before the first step, and the final values it is expected to reach."""
        return self._planner(History(replace(self.family.goal, seed=seed))).answer()

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data; the family's, so that the study can go on without it."""
        family = self.family.settings.to_json()
        return {
            "strategy": "new task",
            "task": self.task,
            "family": {
                "tasks": list(self.family.all_tasks),
                **{name: family[name] for name in FAMILY_FIELDS if name in family},
                "objective": asdict(self.model.encoder.segmenter.objective),
            },
            **{name: value for name, value in asdict(self.settings).items() if name not in OFF or value != OFF[name]},
            "probe": self.probe_intervals,
        }

    def as_begun(self, settings: dict[str, Any]) -> Strategy:
        """A study that 0.1.0 began with its defaults goes on with these."""
        alphas = ALPHAS_OF_0_1_0 if self.settings.alphas == NewTaskSettings().alphas else self.settings.alphas
        former = replace(self, settings=replace(self.settings, cold_start=False, alphas=alphas))
        return former if json.loads(json.dumps(former.to_json())) == settings else self

    def propose(self, history: History) -> Decision:
        """The next decision: by the family, or of the cold start that the run has become."""
        if not self._begins_cold:
            return self._follow_family(history)
        cold = cold_forks(history)
        if cold or not history.forks:
            return decide_cold(history, cold)
        test, *followers = history.forks
        decision = self._follow_family(replace(history, forks=tuple(followers), round=history.round - 1))
        if (why := self._unlike_family(history, decision)) is not None:
            instead = decide_cold(history, (test,))
            return replace(instead, reasons=(why, *instead.reasons))
        intervals, limit = (decision.intervals, ())
        if shows_something(test):
            intervals, limit = below_tested(history, decision.intervals)
        drops = ((test.id, because("range test over")),) if test.alive else ()
        return replace(
            decision,
            intervals=tuple(replace(interval, round=history.round + 1) for interval in intervals),
            drops=drops + decision.drops,
            reasons=decision.reasons + limit,
        )

    def _unlike_family(self, history: History, planned: Decision) -> Reason | None:
        """Why the range test or the first interval says that the task is unlike its family; None if they do not."""
        test, *followers = history.forks
        if not followers:
            if test.trace is None or not shows_something(test):
                return None
            other = other_loss(self.known_runs, self.model.encoder.segmenter.objective, float(test.trace.values[0]))
            return other or unsuitable_rate(history, planned.intervals[0].multiplier)
        if history.round > 2:
            return None
        if not any(fork.alive for fork in followers):
            return because("first interval failed")
        leader = history.ranked()[0]
        return wasted_interval(leader, max(interval.multiplier for interval in planned.intervals))

    def _follow_family(self, history: History) -> Decision:
        """What the family's model decides; if every fork has failed, a way back."""
        return with_rollback(history, self.total_steps(history.goal) - self._test_steps, self._decide)

    def _decide(self, history: History) -> Decision:
        """The rates of the next interval, or the end."""
        k, planner = history.round, self._planner(history)
        if k == self.space.intervals:
            return self._final_decision(history, planner.location(k))
        if k < self.probe_intervals:
            return self._probe_decision(history, planner, k)
        return self._continue(history, planner, k)

    def _planner(self, history: History) -> RunPlanner:
        return RunPlanner(self.model, self.space, self.task, self.settings, history, self.known_runs)

    def _final_decision(self, history: History, location: TaskPosterior) -> Decision:
        best = max(history.alive, key=lambda fork: (history.goal.objective.sign * fork.final_value, -fork.id))
        reasons = (
            because("ended best", fork=best.id, value=best.final_value),
            location_reason(self.model, location),
        )
        return Decision(winner=best.id, reasons=reasons, details=location_details(self.family, self.model, location))

    def _probe_decision(self, history: History, planner: RunPlanner, k: int) -> Decision:
        """The next rate of the probe; the whole probe is searched anew each time, and comes out the same."""
        location = planner.location(0)
        x, share = planner.probe(location, self.probe_intervals)
        fork = history.alive[0] if history.alive else None
        interval = self._interval(history, k, fork, x[k])  # one fork: others would only repeat it
        reason = because("probe", rates=self.space.lr_range.from_unit(np.array(x)).tolist(), share=share)
        details = location_details(self.family, self.model, location)
        return Decision((interval,), reasons=(reason,), details=details)

    def _continue(self, history: History, planner: RunPlanner, k: int) -> Decision:
        """Interval k of every fork, each by a plan of the whole rest of the run."""
        start = {"universal": 0, "probe": self.probe_intervals, "dynamic": k}[self.settings.method]
        location = planner.location(start)
        plans = [planner.continuation(location, fork, start) for fork in history.alive or [None]]
        best = max(plans, key=lambda plan: plan.score)
        intervals, reasons, tried = list[Interval](), [location_reason(self.model, location)], list[float]()
        for number in range(self.settings.forks):
            plan = best if number == 0 else planner.continuation(location, best.fork, start, number)
            # only the first fork is limited: the others may try higher rates, since the best of all is kept
            limit = planner.limit(location, best.fork, k) if number == 0 else RateLimit()
            is_limited = limit.binds(plan.x[k - start])
            x = distinct_rate(limit.apply(plan.x[k - start]), tried)
            tried.append(x)
            intervals.append(self._interval(history, k, best.fork, x, number))
            reasons.append(self._interval_reason(intervals[-1], plan, k, limited=is_limited))
            reasons += [limit.reason] if is_limited and limit.reason else []
        continued = {interval.fork for interval in intervals}
        drops = [
            (fork.id, because("expected to end worse", best=best.fork.id))
            for fork in history.alive
            if best.fork and fork.id not in continued
        ]
        details = location_details(self.family, self.model, location)
        return Decision(tuple(intervals), tuple(drops), reasons=tuple(reasons), details=details)

    def _interval(self, history: History, k: int, fork: Fork | None, x: float, number: int = 0) -> Interval:
        """Interval k of a fork; of a clone of it if it is not the first of this decision (`number`)."""
        points, rate = self.space.change_points, float(self.space.lr_range.from_unit(np.array([x]))[0])
        before = list(fork.schedule.multipliers) if fork is not None else []
        schedule = Schedule([*before, rate], points[: k + 2], self.space.steps, self.space.base)
        first, last, turn = int(points[k]), int(points[k + 1]), history.round + 1
        if fork is None:
            return Interval(number + self._begins_cold, None, first, last, schedule, turn)
        if number == 0:
            return Interval(fork.id, None, first, last, schedule, turn)
        return Interval(max(f.id for f in history.forks) + number, fork.id, first, last, schedule, turn)

    def _interval_reason(self, interval: Interval, plan: Continuation, k: int, *, limited: bool) -> Reason:
        return because(
            "plan",
            fork=interval.fork,
            step=interval.stop,
            rate=interval.schedule.multipliers[-1],
            limited=limited,
            rates=planned_rates(self.space, plan, k),
            alpha=plan.alpha,
            value=plan.value,
        )


def distinct_rate(x: float, tried: Sequence[float]) -> float:
    """x, or the nearest point at least MIN_RATE_GAP from those tried: forks that begin alike would be one run twice.

    >>> distinct_rate(0.5, [0.2]), distinct_rate(0.5, [0.5]), round(distinct_rate(1.0, [1.0]), 2)
    (0.5, 0.55, 0.95)
    """
    points = [x, *(at + side * MIN_RATE_GAP for at in tried for side in (1, -1))]
    free = [p for p in points if 0 <= p <= 1 and all(abs(p - at) >= MIN_RATE_GAP - 1e-9 for at in tried)]
    return min(free, key=lambda p: round(abs(p - x), 9)) if free else x
