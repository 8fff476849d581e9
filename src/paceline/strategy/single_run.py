"""The recipe of `single` through the one loop: `tune(cost=1)` and ask/tell, on one fork.

The range test is a fork of its own from step 0. The run then begins from step 0 anew and is as much shorter, so that it
has annealed when the budget is spent. The peak is corrected where it is observed, at log-spaced rungs; a run that comes
apart goes on from its last rung, lower and again shorter.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Recorded
from paceline.strategy.base import Decision, Fork, Goal, History, Strategy
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.rollback import spent
from paceline.strategy.single import (
    BACK,
    BASE,
    WINDOW,
    check_steps,
    correction,
    peaks_of_sweep,
    progress,
    sweep_steps,
    worse,
)
from paceline.study import Interval, Reason, because
from paceline.traces import Objective, Schedule

LAG = 1.15
"""Averaged weights at step t are about those of step t / 1.15."""


def horizon(cost: float) -> Strategy:
    """The default strategy for a cost in runs: one run below 1.1, where a plan with forks begins."""
    if not isinstance(cost, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"cost must be a number of runs, got {cost!r}: pass 2.3, or 1 for a single run")
    if cost < 1:
        raise InputError(f"cost must be at least 1, one run of all steps, got {cost}: lower `steps` to spend less")
    return SingleRun() if cost < 1.1 else Dynamic.horizon(cost=cost)


@dataclass(frozen=True, slots=True)
class SingleRun(Strategy):
    """A range test, then one run: a warm-up and a decay to zero, whose peak is corrected on the way."""

    restarts: ClassVar[bool] = True

    def objective(self, objective: Objective) -> Objective:
        """Averaged weights, on the scale of the user's loss."""
        return Objective(objective.mode, "identity", "averaged")

    def total_steps(self, goal: Goal) -> int:
        """One run, the range test included."""
        sweep_steps(goal.steps)  # refuses too few
        return goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data: only which weights are read, for views."""
        return {"strategy": "single", "weights": "averaged"}

    def propose(self, history: History) -> Decision:
        """Range test, run, corrections, end."""
        if not history.forks:
            return self._sweep(history.goal)
        fork = history.forks[-1]
        if len(history.forks) == 1:
            return self._begin(history, fork)
        if not fork.alive:
            return self._go_back(history, fork, int(fork.schedule.change_points[-2]))
        if max(-history.goal.objective.sign * value for value in fork.last_values.values()) > worse(
            _first(history), 1.5
        ):
            return self._go_back(history, fork, 0)  # the state at its last rung is no longer held
        if fork.schedule.change_points[-1] == fork.schedule.steps:
            return Decision(winner=fork.id, reasons=(because("ended", value=fork.recent()),))
        return self._correct(history, fork)

    def _sweep(self, goal: Goal) -> Decision:
        bounds, stop = goal.lr_range, sweep_steps(goal.steps)
        rising = Recorded((0, stop - 1), (bounds.low / bounds.high, 1.0))
        reason = because("range test", low=bounds.low, high=bounds.high, steps=stop)
        proposal = Interval(0, None, 0, stop, Schedule([bounds.high], [0, stop], base=rising), 1)
        return Decision((proposal,), (), None, (reason,))

    def _begin(self, history: History, sweep: Fork) -> Decision:
        """Read the range test and start the run at its peak."""
        assert sweep.trace is not None
        if sweep.alive and len(sweep.trace.steps) < 2:
            return Decision(reasons=(because("range test observed once", steps=sweep_steps(history.goal.steps)),))
        seen = np.isfinite(sweep.trace.values).any()
        peak = 10.0 ** _sweep_peaks(history)[0] if seen else history.goal.lr_range.low
        length = history.goal.steps - sweep_steps(history.goal.steps)
        stop = check_steps(length)[0]
        proposal = Interval(1, None, 0, stop, Schedule([peak], [0, stop], length, BASE), history.round + 1)
        drops = ((sweep.id, because("range test over")),) if sweep.alive else ()
        return Decision((proposal,), drops, reasons=(because("range test result", rate=peak),))

    def _correct(self, history: History, fork: Fork) -> Decision:
        """Move the multiplier by what raw and averaged loss say."""
        step = int(fork.schedule.change_points[-1])
        move, why = self._move(history, fork, step)
        rate = min(fork.multiplier * 10.0**move, _ceiling(history))
        later = [check for check in check_steps(fork.schedule.steps) if check > step]
        stop = later[0] if later else fork.schedule.steps
        proposal = Interval(fork.id, None, step, stop, fork.schedule.extend(rate, stop), history.round + 1)
        return Decision((proposal,), reasons=(because("new peak", step=step, rate=rate, why=why),))

    def _move(self, history: History, fork: Fork, step: int) -> tuple[float, Reason]:
        assert fork.trace is not None
        losses, steps = _losses(history, fork), fork.trace.steps
        recent = (steps >= step * WINDOW) & (steps > 0)
        if set(fork.last_values) != {"raw", "averaged"} or recent.sum() < 4:
            return 0.0, because("too few observations")
        noise = -history.goal.objective.sign * (fork.last_values["raw"] - fork.last_values["averaged"])
        gain = progress(steps[recent].astype(float), losses[recent])
        move = correction(noise, gain, step / fork.schedule.steps)
        return move, because("noise and progress", noise=noise, progress=gain)

    def _go_back(self, history: History, fork: Fork, start: int) -> Decision:
        """Go on from an earlier rung, or from the start, lower, with the steps that are left."""
        used = sum(int(known.schedule.change_points[-1]) - known.start for known in history.forks)
        if fork.failure and used > history.goal.steps - 2:
            used = spent(history)  # the last interval is half the run: what failure left of it is needed
        length, rate = start + history.goal.steps - used, min(_ceiling(history), fork.multiplier * _back(fork))
        drops = ((fork.id, because("diverged")),) if fork.alive else ()
        if rate < history.goal.lr_range.low or length < start + 2:
            return Decision((), drops, None, (because("all tries diverged"),))
        stop = next((check for check in check_steps(length) if check > start), length)
        kept = fork.schedule.change_points <= start
        points = np.append(fork.schedule.change_points[kept], stop)
        multipliers = np.append(fork.schedule.multipliers[: kept.sum() - 1], rate)
        schedule = Schedule(multipliers, points, length, BASE)
        holder = fork.parent if start == fork.start else fork.id  # whose state at `start` is held
        proposal = Interval(fork.id + 1, holder if start else None, start, stop, schedule, history.round + 1)
        reason = because("lower peak", step=start, rate=rate)
        return Decision((proposal,), drops, None, (reason,))


def _losses(history: History, fork: Fork) -> np.ndarray:
    """Its values as losses: smaller is better."""
    assert fork.trace is not None
    return -history.goal.objective.sign * fork.trace.values


def _first(history: History) -> float:
    """The loss at the start of the range test."""
    return float(_losses(history, history.forks[0])[0])


def _sweep_peaks(history: History) -> tuple[float, float]:
    """What the range test says: log10 of the first and of the highest peak."""
    sweep = history.forks[0]
    assert sweep.trace is not None
    at = np.maximum(0.0, sweep.trace.steps / (LAG if "averaged" in sweep.last_values else 1.0) - 1)
    return peaks_of_sweep(np.log10(sweep.schedule(at)), _losses(history, sweep))


def _ceiling(history: History) -> float:
    """The highest multiplier allowed: by the bounds, the range test, and runs that came apart (all but the last)."""
    apart = [fork.multiplier * _back(fork) for fork in history.forks[1:-1]]
    return min(history.goal.lr_range.high, 10.0 ** _sweep_peaks(history)[1], *apart)


def _back(fork: Fork) -> float:
    """The factor to go down by when a fork comes apart; the square of the last one each time."""
    return 10.0 ** (-BACK * 2.0 ** (fork.id - 1))
