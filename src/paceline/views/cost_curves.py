"""Cost and value of several studies, to compare them."""

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from paceline.views.data import StudyView


class CostCurve(NamedTuple):
    """The cost of a study, counted in whole runs, and its value.

    `value` is that of the winner, or of the leader so far, with these `weights`. For a family it is the mean over the
    best runs of its tasks, once each task has one. `points` pairs a cost with the best value at the end of an interval
    so far.
    """

    name: str
    cost: float
    value: float | None
    weights: str
    finished: bool
    points: tuple[tuple[float, float], ...]


def cost_curves(views: Mapping[str, StudyView]) -> tuple[CostCurve, ...]:
    """The cost curve of each study, in the order given."""
    return tuple(_cost_curve(name, view) for name, view in views.items())


def _cost_curve(name: str, view: StudyView) -> CostCurve:
    run_steps = max(view.steps, 1)
    value, weights = _value(view)
    points = tuple((best.done_steps / run_steps, best.value) for best in view.best_so_far if isfinite(best.value))
    return CostCurve(name, view.done_steps / run_steps, value, weights, view.finished is not None, points)


def _value(view: StudyView) -> tuple[float | None, str]:
    """The value of a study, and the weights that it is of."""
    if view.tasks:
        values = [run.value for run in view.best_runs.values()]
        return (sum(values) / len(values) if len(values) == len(view.tasks) else None), view.weights
    if view.finished is not None:
        return view.finished.value, view.finished.weights
    return (None if view.best is None else view.value(view.best)), view.weights
