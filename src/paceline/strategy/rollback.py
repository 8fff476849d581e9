"""Going back: if every living fork has failed, one run begins again where the best of them began, at a lower rate.

This wraps a strategy's own decision and is, like it, a function of the history. The strategy does not know about it: it
sees the round that it would be in without failures. The intervals that it proposes afterwards are limited to the steps
that are left, because a strategy promises a total of steps. A fork has failed if it did not reach the end of its
interval, or if it has diverged (`paceline.traces.divergence`). A loss that rises less is ranked last but may still be
the best there is.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from paceline.strategy.base import Decision, Fork, History
from paceline.study import Failure, Interval, Reason, because

MAX_TRIES = 3  # how often a study goes back
REDUCTION_DECADES = 0.3  # the rate of each try is this much below the lowest that failed
MIN_REDUCTION = 0.99  # a try needs a rate below this share of the lowest that failed: the bounds may not allow one
DETAILS_BY_FORK = {"forecast", "candidates", "p_fail"}  # details with one entry for each interval


def with_rollback(history: History, total_steps: int, decide: Callable[[History], Decision]) -> Decision:
    """The decision of `decide`. If every fork has failed, a way back, or the end with advice.

    Args:
        history: everything so far; all intervals of a round cover the same steps.
        total_steps: the most steps that all forks together may take.
        decide: the strategy's own decision.
    """
    if not history.forks:
        return decide(history)
    rounds = len({int(point) for fork in history.forks for point in fork.schedule.change_points}) - 1
    tries, steps_left = history.round - rounds, total_steps - steps_taken(history)
    if not history.alive:
        return _go_back(history, tries, steps_left)
    decision = decide(replace(history, round=rounds))
    return _limit_steps(decision, history, steps_left) if tries and decision.intervals else decision


def steps_taken(history: History) -> int:
    """Steps taken by all forks, at most: a failure between two observations counts up to the second."""
    gaps = [np.diff(trace.steps[: -1 if trace.failed else None]) for trace in history.traces()]
    largest_gap = max((int(gap.max()) for gap in gaps if gap.size), default=history.goal.steps)
    total = 0
    for fork in history.forks:
        end = int(fork.schedule.change_points[-1])
        if fork.failure and fork.trace is not None:
            end = min(end, fork.trace.last_step + largest_gap)
        total += end - fork.start
    return total


def _go_back(history: History, tries: int, steps_left: int) -> Decision:
    """One fork from the best state that the failed ones began from, if tries, steps and lower rates are left."""
    latest = max(int(fork.schedule.change_points[-1]) for fork in history.forks if fork.failure)
    failed = [fork for fork in history.forks if fork.failure and fork.schedule.change_points[-1] == latest]
    sign = history.goal.objective.sign
    best = max(failed, key=lambda fork: (sign * _value_before(fork), -fork.id))
    number, start = best.origin
    lowest = min(fork.multiplier for fork in failed if fork.origin == best.origin)
    rate = max(lowest / 10**REDUCTION_DECADES, history.goal.lr_range.low)
    # if all rates of a grid fail at once, no rate works
    is_grid = start == 0 and len(failed) != tries + 1
    is_affordable = steps_left >= history.goal.steps - start
    if tries < MAX_TRIES and is_affordable and rate < MIN_REDUCTION * lowest and not is_grid:
        fork = max(fork.id for fork in history.forks) + 1
        parent, schedule = (number if start else None), best.schedule.with_last(rate)
        interval = Interval(fork, parent, start, latest, schedule, history.round + 1)
        return Decision((interval,), reasons=(because("go back", fork=fork, step=start, rate=rate),))
    return Decision(reasons=(_all_failed(failed, best, tries),))


def _all_failed(failed: list[Fork], best: Fork, tries: int) -> Reason:
    """Why the study is over: what made the forks fail, and the best state that is left."""
    number, start = best.origin
    best_state = {"fork": number, "step": start, "value": _value_before(best)} if start else None
    failures = [fork.failure for fork in failed if fork.failure is not None]
    return because("all failed", cause=_common_cause(failures), tries=tries, best_state=best_state)


def _common_cause(failures: list[Failure]) -> str:
    if all(failure.is_unsound_value and failure.step == 0 for failure in failures):
        return "first value"
    if any(failure.is_unsound_value for failure in failures):
        return "rates"
    return "errors"


def _limit_steps(decision: Decision, history: History, steps_left: int) -> Decision:
    """The first intervals of a decision, as many as leave enough steps for one fork to reach the end."""
    first = decision.intervals[0]
    count = max(1, (steps_left - (history.goal.steps - first.stop)) // (first.stop - first.start))
    intervals = tuple(replace(interval, round=history.round + 1) for interval in decision.intervals[:count])
    left_out = {interval.fork for interval in decision.intervals[count:]}
    no_steps = because("no steps left")
    drops = (*decision.drops, *((fork.id, no_steps) for fork in history.alive if fork.id in left_out))
    reasons = (*decision.reasons, *(because("does not run", fork=fork) for fork in sorted(left_out)))
    details = dict(decision.details)
    for name in DETAILS_BY_FORK & set(details):
        details[name] = [item for item in details[name] if item["fork"] not in left_out]
    return replace(decision, intervals=intervals, drops=drops, reasons=reasons, details=details)


def _value_before(fork: Fork) -> float:
    """The last value before the interval in which a fork failed."""
    assert fork.trace is not None
    steps, values = fork.trace.path()
    before = values[steps <= fork.schedule.change_points[-2]]
    return float(before[-1]) if len(before) else np.nan
