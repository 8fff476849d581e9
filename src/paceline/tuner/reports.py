"""Reports: what a fork observed over one interval, checked when it comes in and added to the fork's trace."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from paceline.errors import InputError
from paceline.strategy import Fork, History, Proposal
from paceline.study import Failed, Observed
from paceline.traces import Trace
from paceline.traces.trace import is_sound

Values = Sequence[float] | Mapping[str, Sequence[float]]
Columns = dict[str, tuple[float, ...]]


def checked(proposal: Proposal, steps: Sequence[int], values: Values) -> tuple[tuple[int, ...], Columns]:
    """A report as steps and named columns, or what is wrong with it."""
    named = dict(values) if isinstance(values, Mapping) else {"raw": values}
    try:
        at = tuple(int(step) for step in steps)
        columns = {of: tuple(float(v) for v in column) for of, column in named.items()}
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected a list of steps and a list of numbers for each kind of weights, got other things ({error}): "
            'report like tell(proposal, [10, 20], {"raw": [0.9, 0.8]})'
        ) from error
    if not at or not columns:
        raise InputError(
            f"fork {proposal.fork} reported nothing between steps {proposal.start} and {proposal.stop}: "
            "observe at least once per interval (every=), or call fail()"
        )
    if any(len(column) != len(at) for column in columns.values()) or set(columns) - {"raw", "averaged"}:
        raise InputError('expected one value per step under "raw" or "averaged", got columns of other lengths or names')
    before = proposal.start if proposal.start else -1  # a run may be observed before its first step
    if any(b <= a for a, b in pairwise((before, *at))) or at[-1] > proposal.stop:
        raise InputError(f"steps must increase within ({proposal.start}, {proposal.stop}], got {at[0]}..{at[-1]}")
    return at, columns


def first_bad(steps: tuple[int, ...], columns: Columns) -> int | None:
    """The first step at which a value is not finite."""
    return next(
        (s for i, s in enumerate(steps) if not is_sound(np.array([c[i] for c in columns.values()])).all()), None
    )


def reported(history: History, proposal: Proposal, event: "Observed | Failed") -> Fork:
    """The fork with what it observed; a failed one ends with a value that is not finite."""
    fork, of = history.fork(event.fork), history.goal.objective.of
    trace = _grown(history, fork, "trace", *_kept(proposal, event, column(event.values, of)))
    same = of == "raw" or "raw" not in event.values
    raw = trace if same else _grown(history, fork, "raw", *_kept(proposal, event, event.values["raw"]))
    return replace(
        fork,
        trace=trace,
        raw=raw,
        last={of: values[-1] for of, values in event.values.items() if values},
        closing={of: float(np.mean(values[-5:])) for of, values in event.values.items() if values},
        alive=isinstance(event, Observed),
        failure=event.reason if isinstance(event, Failed) else "",
    )


def _kept(
    proposal: Proposal, event: "Observed | Failed", values: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Steps and values up to where a run failed, and whether it did."""
    steps, observed = np.array(event.steps, dtype=int), np.array(values)
    if isinstance(event, Observed):
        return steps, observed, False
    sound = is_sound(observed)
    count = len(observed) if sound.all() else int(np.argmin(sound))
    after = int(steps[count - 1]) if count else proposal.start
    return np.append(steps[:count], max(event.step, after + 1)), np.append(observed[:count], np.nan), True


def column(values: Columns, of: str) -> tuple[float, ...]:
    """The values of these weights, or of the others where there are none."""
    return values.get(of) or next(iter(values.values()), ())


def _grown(history: History, fork: Fork, of: str, steps: np.ndarray, values: np.ndarray, failed: bool) -> Trace:
    """The fork's trace (`of` says which) with these observations added."""
    known: Trace | None = getattr(fork, of)
    if known is not None:
        return replace(
            known,
            steps=np.concatenate([known.steps, steps]),
            values=np.concatenate([known.values, values]),
            schedule=fork.schedule,
            failed=failed,
        )
    parent: Trace | None = getattr(history.fork(fork.parent), of) if fork.parent is not None else None
    at = min(fork.start, parent.last_step) if parent is not None else 0
    name, goal = str(fork.id), history.goal
    task = goal.tasks[fork.task] if goal.tasks else ""
    return Trace(
        steps, values, fork.schedule, parent, at, name=name, task=task, objective=goal.objective, failed=failed
    )
