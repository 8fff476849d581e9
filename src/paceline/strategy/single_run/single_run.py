"""One run without forks through the one loop: `tune(cost=1)`, and ask and tell by hand.

The range test is a fork of its own from step 0. The run then begins at step 0 again and is shorter by the length of the
test, so that it has annealed when the budget is spent. The peak is corrected at change points that are evenly spaced in
log time. A run that diverges goes on from its last change point, at a lower peak, and is again shorter.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paceline.shapes import Joined, Recorded
from paceline.strategy.base import Decision, Fork, Goal, History, Strategy
from paceline.strategy.rollback import steps_taken
from paceline.strategy.single_run.rate_correction import rate_correction
from paceline.strategy.single_run.rules import (
    correction_steps,
    loss_limit,
    peaks_from_range_test,
    range_test_steps,
)
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN
from paceline.study import Interval, because
from paceline.traces import Objective, Schedule


@dataclass(frozen=True, slots=True)
class SingleRun(Strategy):
    """A range test, then one run: a warm-up and a decay to zero, whose peak is corrected on the way."""

    restarts: ClassVar[bool] = True

    def objective(self, objective: Objective) -> Objective:
        """Averaged weights, on the scale of the user's loss."""
        return Objective(objective.mode, "identity", "averaged")

    def total_steps(self, goal: Goal) -> int:
        """One run, the range test included."""
        range_test_steps(goal.steps)  # refuses too few
        return goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data: which weights are used, for views."""
        return {"strategy": "single", "weights": "averaged"}

    def propose(self, history: History) -> Decision:
        """The range test, the run, its corrections, and the end."""
        if not history.forks:
            return self._start_range_test(history.goal)
        fork = history.forks[-1]
        if len(history.forks) == 1:
            return self._start_run(history, fork)
        if not fork.alive:
            return self._lower_peak(history, fork, int(fork.schedule.change_points[-2]))
        if _has_diverged(history, fork):
            return self._lower_peak(history, fork, 0)  # the state at its last change point is deleted by now
        if fork.schedule.change_points[-1] == fork.schedule.steps:
            return Decision(winner=fork.id, reasons=(because("ended", value=fork.recent()),))
        return self._correct_peak(history, fork)

    def _start_range_test(self, goal: Goal) -> Decision:
        bounds, stop = goal.lr_range, range_test_steps(goal.steps)
        rising = Recorded((0, stop - 1), (bounds.low / bounds.high, 1.0))
        interval = Interval(0, None, 0, stop, Schedule([bounds.high], [0, stop], base=rising), 1)
        reason = because("range test", low=bounds.low, high=bounds.high, steps=stop)
        return Decision((interval,), reasons=(reason,))

    def _start_run(self, history: History, test: Fork) -> Decision:
        """Start the run at the peak that the range test suggests."""
        assert test.trace is not None
        test_steps = range_test_steps(history.goal.steps)
        if test.alive and len(test.trace.steps) < 2:
            return Decision(reasons=(because("range test observed once", steps=test_steps),))
        has_values = np.isfinite(test.trace.values).any()
        peak = 10.0 ** test_peaks(history)[0] if has_values else history.goal.lr_range.low
        length = history.goal.steps - test_steps
        stop = correction_steps(length)[0]
        schedule = Schedule([peak], [0, stop], length, SINGLE_RUN.base)
        interval = Interval(test.id + 1, None, 0, stop, schedule, history.round + 1)
        drops = ((test.id, because("range test over")),) if test.alive else ()
        return Decision((interval,), drops, reasons=(because("range test result", rate=peak),))

    def _correct_peak(self, history: History, fork: Fork) -> Decision:
        """Move the multiplier by noise and progress, as far as they can be told from its losses."""
        step = int(fork.schedule.change_points[-1])
        assert fork.trace is not None
        last_losses = {weights: -history.goal.objective.sign * value for weights, value in fork.last_values.items()}
        correction = rate_correction(fork.trace.steps, _losses(history, fork), last_losses, step, fork.schedule.steps)
        rate = _within_limits(history, fork.multiplier * 10.0**correction.decades)
        stop = _next_correction(fork.schedule.steps, step)
        interval = Interval(fork.id, None, step, stop, fork.schedule.extend(rate, stop), history.round + 1)
        return Decision((interval,), reasons=(because("new peak", step=step, rate=rate, why=correction.reason),))

    def _lower_peak(self, history: History, fork: Fork, start: int) -> Decision:
        """A clone that goes on from an earlier step at a lower peak, with the steps that are left."""
        used = sum(int(other.schedule.change_points[-1]) - other.start for other in history.forks)
        if fork.failure and used > history.goal.steps - 2:
            used = steps_taken(history)  # the last interval is half the run: what the failure left of it is needed
        length = start + history.goal.steps - used
        rate = _within_limits(history, fork.multiplier * _reduction_factor(len(history.forks) - 2))
        drops = ((fork.id, because("diverged")),) if fork.alive else ()
        if fork.multiplier <= history.goal.lr_range.low or length < start + 2:
            return Decision(drops=drops, reasons=(because("all tries diverged"),))
        stop = _next_correction(length, start)
        kept = fork.schedule.change_points <= start
        change_points = np.append(fork.schedule.change_points[kept], stop)
        multipliers = np.append(fork.schedule.multipliers[: kept.sum() - 1], rate)
        base, trained = SINGLE_RUN.base, fork.schedule  # what was trained until `start` was of a longer run
        base = base if start == 0 else Joined(trained.base, trained.steps, start, base)
        schedule = Schedule(multipliers, change_points, length, base)
        parent = fork.parent if start == fork.start else fork.id  # the fork whose state at `start` is kept
        interval = Interval(fork.id + 1, parent if start else None, start, stop, schedule, history.round + 1)
        return Decision((interval,), drops, reasons=(because("lower peak", step=start, rate=rate),))


def _next_correction(length: int, step: int) -> int:
    """The next step at which the peak is corrected in a run of this length, or its end."""
    return next((correction for correction in correction_steps(length) if correction > step), length)


def _losses(history: History, fork: Fork) -> np.ndarray:
    """Its values as losses: smaller is better."""
    assert fork.trace is not None
    return -history.goal.objective.sign * fork.trace.values


def _has_diverged(history: History, fork: Fork) -> bool:
    """Whether a fork's latest loss is far above that at the start of the range test."""
    latest = max(-history.goal.objective.sign * value for value in fork.last_values.values())
    initial = float(_losses(history, history.forks[0])[0])
    return latest > loss_limit(initial, SINGLE_RUN.divergence_factor)


def test_peaks(history: History) -> tuple[float, float]:
    """log10 of the first and of the highest peak, from the range test."""
    test = history.forks[0]
    assert test.trace is not None
    lag = SINGLE_RUN.averaging_lag if "averaged" in test.last_values else 1.0
    steps = np.maximum(0.0, test.trace.steps / lag - 1)
    return peaks_from_range_test(np.log10(test.schedule(steps)), _losses(history, test))


def _within_limits(history: History, multiplier: float) -> float:
    """The nearest multiplier allowed: by the bounds, the range test, and all runs that diverged but the last."""
    reduced = [fork.multiplier * _reduction_factor(before) for before, fork in enumerate(history.forks[1:-1])]
    highest = min(history.goal.lr_range.high, 10.0 ** test_peaks(history)[1], *reduced)
    return max(history.goal.lr_range.low, min(multiplier, highest))


def _reduction_factor(before: int) -> float:
    """The factor by which the peak falls if so many forks have diverged before; each is the square of the last."""
    return 10.0 ** (-SINGLE_RUN.first_reduction * 2.0**before)
