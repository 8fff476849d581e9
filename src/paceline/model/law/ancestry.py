"""How long two runs were the same run: forks share the past of their parents."""

import numpy as np

from paceline.traces import Trace


def shared_until(one: Trace, other: Trace) -> float:
    """Log of the step until which two runs were the same run.

    It is infinite for the same run, and -inf for runs that are not related.
    """
    until = -np.inf
    for (a, end), (b, other_end) in zip(_ancestors(one), _ancestors(other), strict=False):
        if not _is_same(a, b):
            break
        until = min(end, other_end)
        if end != other_end:
            break
    return float(np.log(until)) if until > 0 else -np.inf


def _ancestors(trace: Trace) -> list[tuple[Trace, float]]:
    """The ancestors of a run and itself, oldest first, each with the step at which the run leaves it."""
    chain, end = list[tuple[Trace, float]](), np.inf
    current: Trace | None = trace
    while current is not None:
        chain.insert(0, (current, end))
        end, current = min(end, float(max(current.fork_step, 1))), current.parent
    return chain


def _is_same(one: Trace, other: Trace) -> bool:
    return one is other or (bool(one.name) and one.name == other.name and one.task == other.task)
