"""Going back: when every living fork has failed, run on from where the best of them began, at a lower rate.

Wrapped around a strategy's own decision, and like it a function of the history. The strategy never sees it: it is shown
the round it would be in without, and what it proposes afterwards is cut down to the steps that are left, since a
strategy's total of steps is a promise. A fork counts as failed here when its interval was not finished or a value was
not finite; a loss that only rises is ranked last, and taught to the failure model, but may still be the best there is.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from paceline.strategy.base import Decision, Fork, History
from paceline.study import Interval, because
from paceline.traces import Schedule

TIMES, DECADES = 3, 0.3
PER_PROPOSAL = {"forecast", "candidates", "p_fail"}  # details that speak of one proposal each


def with_rollback(history: History, total_steps: int, decide: Callable[[History], Decision]) -> Decision:
    """What `decide` says; where every fork has failed, a way back, or advice.

    Args:
        history: everything so far; all proposals of a round cover the same steps.
        total_steps: the most steps that all forks together may take.
        decide: the strategy's own decision.
    """
    if not history.forks:
        return decide(history)
    stages = len({int(point) for fork in history.forks for point in fork.schedule.change_points}) - 1
    times, left = history.round - stages, total_steps - spent(history)
    if not history.alive:
        return _go_back(history, times, left)
    decision = decide(replace(history, round=stages))
    return _cut_down(decision, history, left) if times and decision.intervals else decision


def spent(history: History) -> int:
    """Steps taken by all forks, at most: what failed between two observations counts up to the second."""
    gaps = [np.diff(trace.steps[: -1 if trace.failed else None]) for trace in history.traces()]
    every = max((int(gap.max()) for gap in gaps if gap.size), default=history.goal.steps)
    total = 0
    for fork in history.forks:
        end = int(fork.schedule.change_points[-1])
        if fork.failure and fork.trace is not None:
            end = min(end, fork.trace.last_step + every)
        total += end - fork.start
    return total


def _go_back(history: History, times: int, left: int) -> Decision:
    """One fork from the best state that the failed ones began from, if there are tries, steps and lower rates left."""
    latest = max(int(fork.schedule.change_points[-1]) for fork in history.forks if fork.failure)
    failed = [fork for fork in history.forks if fork.failure and fork.schedule.change_points[-1] == latest]
    sign = history.goal.objective.sign
    best = max(failed, key=lambda fork: (sign * _value_before(fork), -fork.id))
    number, start = best.origin
    lowest = min(fork.multiplier for fork in failed if fork.origin == best.origin)
    rate = max(lowest / 10**DECADES, history.goal.lr_range.low)
    alone = start > 0 or len(failed) == times + 1  # a whole grid that fails at once says that no rate works
    affordable = left >= history.goal.steps - start
    if times < TIMES and affordable and rate < 0.99 * lowest and alone:
        fork = max(fork.id for fork in history.forks) + 1
        parent, schedule = (number if start else None), _schedule(best, rate)
        reason = because("go back", fork=fork, step=start, rate=rate)
        return Decision((Interval(fork, parent, start, latest, schedule, history.round + 1),), reasons=(reason,))
    failures = [fork.failure for fork in failed if fork.failure is not None]
    if all(failure.is_unsound_value and failure.step == 0 for failure in failures):
        cause = "first value"
    elif any(failure.is_unsound_value for failure in failures):
        cause = "rates"
    else:
        cause = "errors"
    best_state = {"fork": number, "step": start, "value": _value_before(best)} if start else None
    return Decision(reasons=(because("all failed", cause=cause, tries=times, best_state=best_state),))


def _cut_down(decision: Decision, history: History, left: int) -> Decision:
    """As many of the proposals as leave enough steps for one fork to the end; the first ones stay."""
    first = decision.intervals[0]
    count = max(1, (left - (history.goal.steps - first.stop)) // (first.stop - first.start))
    kept = tuple(replace(p, round=history.round + 1) for p in decision.intervals[:count])
    lost = {p.fork for p in decision.intervals[count:]}
    drops = (*decision.drops, *((fork.id, because("no steps left")) for fork in history.alive if fork.id in lost))
    reasons = (*decision.reasons, *(because("does not run", fork=fork) for fork in sorted(lost)))
    details = dict(decision.details)
    for name in PER_PROPOSAL & set(details):
        details[name] = [item for item in details[name] if item["fork"] not in lost]
    return replace(decision, intervals=kept, drops=drops, reasons=reasons, details=details)


def _schedule(fork: Fork, rate: float) -> Schedule:
    """The schedule of a fork with another rate on its last interval."""
    old = fork.schedule
    return Schedule([*old.multipliers[:-1], rate], old.change_points, old.steps, old.base)


def _value_before(fork: Fork) -> float:
    """The last value before the interval in which a fork failed."""
    assert fork.trace is not None
    steps, values = fork.trace.path()
    before = values[steps <= fork.schedule.change_points[-2]]
    return float(before[-1]) if len(before) else np.nan
