"""Reports: what a fork observed over one interval, checked when it comes in and added to the fork's trace."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from paceline.errors import InputError
from paceline.strategy import Fork, History, Proposal
from paceline.study import Failed, Observed
from paceline.study.recorded import column, kept
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
            f"fork {proposal.fork} reported nothing between steps {proposal.start:,} and {proposal.stop:,}: "
            "observe at least once per interval (every=), or call fail()"
        )
    if any(len(column) != len(at) for column in columns.values()) or set(columns) - {"raw", "averaged"}:
        got = ", ".join(f"{len(column)} under {of!r}" for of, column in columns.items())
        raise InputError(
            f"expected one value per step under 'raw' or 'averaged', got {len(at):,} steps and {got}: report like "
            'tell(proposal, [10, 20], {"raw": [0.9, 0.8]})'
        )
    before = proposal.start if proposal.start else -1  # a run may be observed before its first step
    if any(b <= a for a, b in pairwise((before, *at))) or at[-1] > proposal.stop:
        raise InputError(
            f"steps must increase within ({proposal.start}, {proposal.stop}], got {at[0]}..{at[-1]}: report those alone"
        )
    return at, columns


def first_bad(steps: tuple[int, ...], columns: Columns) -> int | None:
    """The first step at which a value is not finite."""
    return next(
        (s for i, s in enumerate(steps) if not is_sound(np.array([c[i] for c in columns.values()])).all()), None
    )


def reported(history: History, event: "Observed | Failed") -> Fork:
    """The fork with what it observed; a failed one ends with a value that is not finite."""
    fork, of = history.fork(event.fork), history.goal.objective.of
    trace = _grown(history, fork, "trace", *kept(event, column(event.values, of)))
    same = of == "raw" or "raw" not in event.values
    raw = trace if same else _grown(history, fork, "raw", *kept(event, event.values["raw"]))
    return replace(
        fork,
        trace=trace,
        raw=raw,
        last={of: values[-1] for of, values in event.values.items() if values},
        closing={of: float(np.mean(values[-5:])) for of, values in event.values.items() if values},
        alive=isinstance(event, Observed),
        failure=event.reason if isinstance(event, Failed) else "",
    )


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
