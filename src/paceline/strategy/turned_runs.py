"""Deciding when runs have turned: forks that got worse for good are over, and so is a study without hope of better.

A fork that has turned ended where the runner saw it (`paceline.study.turning`), and its best weights are kept. The
strategy goes on with the forks that may still beat them, as if the others had failed. If there are none, the study is
over, long before its steps are spent.

Averaged weights show at the best moment what a falling rate would have brought. Raw weights do not. So if nothing else
was observed, a clone of the best fork first anneals: it begins before the best moment and lowers its rate to zero.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from paceline.strategy.base import Decision, Fork, History
from paceline.study import BestState, Interval, Reason, because
from paceline.traces import Schedule

RECENT = 1 / 3  # the slope of a fork is that of its latest observations, this share of them
OPTIMISM = 2.0  # a fork may gain so many times what its slope promises
PIECES = 8  # equal intervals in which an annealing clone lowers its rate
ANNEALED_PAST_BEST = 0.2  # it ends later than the best moment by this share of its age


def with_early_end(history: History, total_steps: int, decide: Callable[[History], Decision]) -> Decision:
    """The decision of `decide` about the forks that may still beat the best moment; the end if there are none.

    Args:
        history: everything so far.
        total_steps: the most steps that all forks together may take.
        decide: the strategy's own decision.
    """
    best = history.best
    if best is None or not any(_has_turned(fork) for fork in history.forks):
        return decide(history)
    living = [fork for fork in history.alive if not _is_annealing(fork)]
    hopeless = [fork for fork in living if not may_reach(fork, best, history)]
    if len(hopeless) < len(living):
        decision = decide(_without(history, hopeless))
        if decision.intervals:
            return replace(decision, drops=(*decision.drops, *_drops(hopeless, best)))
    done = sum(_last_step(fork) - fork.start for fork in history.forks)
    interval = _annealing_interval(history, best, total_steps - done)
    if interval is not None:
        reason = because(
            "anneal", fork=interval.fork, parent=best.fork, start=interval.start, stop=interval.stop, value=best.value
        )
        return Decision((interval,), _drops(living, best), reasons=(reason,))
    reason = because("turned", fork=best.fork, step=best.step, value=best.value, saved=total_steps - done)
    return Decision(drops=_drops(living, best), winner=best.fork, reasons=(reason,))


def may_reach(fork: Fork, best: BestState, history: History) -> bool:
    """Whether a fork may still reach a value: if it gained twice as much per log step to the end as it does now."""
    if fork.trace is None:
        return True
    steps, values = fork.trace.path()
    recent = (np.arange(len(steps)) >= (1 - RECENT) * len(steps)) & (steps > 0)
    if recent.sum() < 2:
        return True
    sign = history.goal.objective.sign
    slope = np.polyfit(np.log(steps[recent]), sign * values[recent], 1)[0]
    gain = OPTIMISM * max(0.0, float(slope)) * np.log(history.goal.steps / steps[-1])
    return bool(sign * values[-1] + gain >= sign * best.value)


def _annealing_interval(history: History, best: BestState, steps_left: int) -> Interval | None:
    """A clone of the best fork that anneals past its best moment; None if that was tried or promises nothing."""
    parent = history.fork(best.fork)
    is_averaged = "averaged" in parent.last_values
    if is_averaged or not _has_turned(parent) or any(_is_annealing(fork) for fork in history.forks):
        return None
    begins_before = 0 < parent.interval_start <= best.step
    number, start = parent.origin if begins_before else best.origin
    stop = min(round((1 + ANNEALED_PAST_BEST) * max(best.step, start)), history.goal.steps, start + steps_left)
    if start == 0 or stop - start < PIECES:
        return None
    fork = max(fork.id for fork in history.forks) + 1
    return Interval(fork, number, start, stop, _annealing(parent.schedule, start, stop), history.round + 1)


def _annealing(schedule: Schedule, start: int, stop: int) -> Schedule:
    """A schedule up to `start`, and from there in equal intervals to a rate of zero at `stop`."""
    points = np.linspace(start, stop, PIECES + 1).round().astype(int)
    middles = (points[:-1] + points[1:]) / 2
    rates = schedule(start) * (stop - middles) / (stop - start)
    before = schedule.change_points < start
    multipliers = rates / schedule.base.factor(middles, schedule.steps)
    return Schedule(
        np.concatenate([schedule.multiplier(schedule.change_points[before]), multipliers]),
        np.concatenate([schedule.change_points[before], points]),
        schedule.steps,
        schedule.base,
    )


def _is_annealing(fork: Fork) -> bool:
    """Whether a fork is the clone that anneals: no other interval has so many rates."""
    new_points = np.sum(fork.schedule.change_points > fork.interval_start)
    return fork.parent is not None and fork.interval_start == fork.start and bool(new_points == PIECES)


def _has_turned(fork: Fork) -> bool:
    return fork.failure is not None and fork.failure.is_turn


def _last_step(fork: Fork) -> int:
    return fork.start if fork.trace is None else max(fork.start, fork.trace.last_step)


def _without(history: History, hopeless: list[Fork]) -> History:
    """The history as a strategy sees it if these forks may not go on."""
    numbers = {fork.id for fork in hopeless}
    forks = tuple(replace(fork, alive=False) if fork.id in numbers else fork for fork in history.forks)
    return replace(history, forks=forks)


def _drops(forks: list[Fork], best: BestState) -> tuple[tuple[int, Reason], ...]:
    return tuple((fork.id, because("cannot catch up", value=fork.recent(), best=best.value)) for fork in forks)
