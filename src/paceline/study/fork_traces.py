"""What the forks of a study observed, as traces: one per fork, with its parent, under the name of its task.

A fork that failed ends with a value that is not finite, or with a finite one that shows that it has diverged.
"""

from collections.abc import Sequence

import numpy as np

from paceline.study.events import Report, Values
from paceline.study.reasons import Failure
from paceline.study.state import ForkState, StudyState
from paceline.traces import Objective, Trace, is_sound


def column(values: Values, weights: str) -> tuple[float, ...]:
    """The values of these weights, or of the others if these were not observed."""
    return values.get(weights) or next(iter(values.values()), ())


def sound_part(report: Report, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of a report; up to the first unsound value, and a NaN after it, if it failed."""
    steps, observed = np.array(report.steps, dtype=int), np.array(values)
    sound = is_sound(observed)
    has_diverged = report.failure is not None and report.failure.kind == "diverged"
    if report.failure is None or report.failure.is_turn or (has_diverged and len(sound) and sound.all()):
        return steps, observed
    count = len(observed) if sound.all() else int(np.argmin(sound))
    last_step = int(steps[count - 1]) if count else report.start
    return np.append(steps[:count], max(report.stop, last_step + 1)), np.append(observed[:count], np.nan)


def failure_of_values(values: Sequence[float], step: int) -> Failure | None:
    """The failure of an observation that cannot be learnt from; None if it can be."""
    observed = np.array(values)
    if is_sound(observed).all():
        return None
    return Failure("diverged" if np.isfinite(observed).all() else "not finite", step=step)


class ForkTraces:
    """The traces of a study's forks, built anew only for forks that have grown.

    Args:
        objective: how values are read.
        weights: the weights whose values are read: `objective.weights`, or "raw".
    """

    def __init__(self, objective: Objective, weights: str) -> None:
        self.objective, self.weights = objective, weights
        self._traces: dict[int, tuple[int, Trace]] = {}

    def of(self, state: StudyState, fork: ForkState) -> Trace | None:
        """The trace of a fork, None if it has not reported yet."""
        grown, ancestor = list[ForkState](), fork
        while ancestor.reports and self._known(ancestor) is None:
            grown.append(ancestor)
            if ancestor.parent is None:
                break
            ancestor = state.forks[ancestor.parent]
        for each in reversed(grown):  # a trace needs that of its parent; a loop, since lineages may be long
            self._traces[each.id] = len(each.reports), self._build(state, each)
        return self._known(fork)

    def _known(self, fork: ForkState) -> Trace | None:
        count, trace = self._traces.get(fork.id, (0, None))
        return trace if count == len(fork.reports) else None

    def _build(self, state: StudyState, fork: ForkState) -> Trace:
        reports, intervals = state.reports(fork), state.intervals(fork)
        parts = [sound_part(report, column(report.values, self.weights)) for report in reports]
        parent = None if fork.parent is None else self._known(state.forks[fork.parent])
        tasks, failure = state.settings.get("tasks", []), reports[-1].failure
        return Trace(
            np.concatenate([steps for steps, _ in parts]),
            np.concatenate([values for _, values in parts]),
            intervals[len(reports) - 1].schedule,
            parent,
            0 if parent is None else min(fork.start, parent.last_step),
            task=tasks[intervals[0].task] if tasks else "",
            name=str(fork.id),
            objective=self.objective,
            failed=failure is not None and not failure.is_turn,
        )


def fork_traces(state: StudyState, objective: Objective) -> list[Trace]:
    """The traces of all forks that have reported, of the weights that the objective reads, or of the others."""
    traces = ForkTraces(objective, objective.weights)
    built = [traces.of(state, fork) for _, fork in sorted(state.forks.items())]
    return [trace for trace in built if trace is not None]
