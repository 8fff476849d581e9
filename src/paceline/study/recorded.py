"""What a study recorded, as traces: one per fork, clones with their parents, each under the name of its task.

The same rules as while the study runs: a fork that failed ends with a value that is not finite.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from paceline.study.events import Event, Failed, Observed, Proposed, Values
from paceline.traces import Objective, Trace
from paceline.traces.trace import is_sound


def column(values: Values, of: str) -> tuple[float, ...]:
    """The values of these weights, or of the others where there are none."""
    return values.get(of) or next(iter(values.values()), ())


def kept(event: "Observed | Failed", values: Sequence[float]) -> tuple[np.ndarray, np.ndarray, bool]:
    """Steps and values of a report up to where the run failed, and whether it did."""
    steps, observed = np.array(event.steps, dtype=int), np.array(values)
    if isinstance(event, Observed):
        return steps, observed, False
    sound = is_sound(observed)
    count = len(observed) if sound.all() else int(np.argmin(sound))
    after = int(steps[count - 1]) if count else event.start
    return np.append(steps[:count], max(event.step, after + 1)), np.append(observed[:count], np.nan), True


def recorded_traces(settings: dict[str, Any], events: Sequence[Event], objective: Objective) -> list[Trace]:
    """The traces of all forks that reported, by the weights the objective reads, or by the others."""
    tasks = settings.get("tasks", [])
    proposed: dict[int, list[Proposed]] = {}
    parts: dict[int, list[tuple[np.ndarray, np.ndarray, bool]]] = {}
    for event in events:
        if isinstance(event, Proposed):
            proposed.setdefault(event.fork, []).append(event)
        if isinstance(event, Observed | Failed):
            parts.setdefault(event.fork, []).append(kept(event, column(event.values, objective.of)))
    found: dict[int, Trace] = {}
    for number in sorted(parts):
        first, last = proposed[number][0], proposed[number][len(parts[number]) - 1]
        parent = None if first.parent is None else found[first.parent]
        steps, values, failed = zip(*parts[number], strict=True)
        found[number] = Trace(
            np.concatenate(steps),
            np.concatenate(values),
            last.schedule,
            parent,
            0 if parent is None else min(first.start, parent.last_step),
            task=tasks[first.task] if tasks else "",
            name=str(number),
            objective=objective,
            failed=failed[-1],
        )
    return list(found.values())
