"""What studies cost and what they came to, to set several side by side."""

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from paceline.views.data import StudyView


class Bill(NamedTuple):
    """A study: its cost in runs, its value, and the best value so far against cost while it ran.

    The value of a family is the mean over the best runs of its tasks, once each has one. `of` says which weights it is
    of; `way` pairs cost with the best value at the end of an interval.
    """

    name: str
    cost: float
    value: float | None
    of: str
    finished: bool
    way: tuple[tuple[float, float], ...]


def bills(views: Mapping[str, StudyView]) -> tuple[Bill, ...]:
    """One per study, in the order given."""
    return tuple(_bill(name, view) for name, view in views.items())


def _bill(name: str, view: StudyView) -> Bill:
    run = max(view.steps, 1)
    value, of = _value(view)
    way = tuple((spent.done / run, spent.value) for spent in view.best_so_far if isfinite(spent.value))
    return Bill(name, view.done_steps / run, value, of, view.finished is not None, way)


def _value(view: StudyView) -> tuple[float | None, str]:
    """Where a study ended, or stands, and of which weights."""
    if view.tasks:
        ends = [run.value for run in view.best_runs.values()]
        return (sum(ends) / len(ends) if len(ends) == len(view.tasks) else None), view.of
    if view.finished is not None:
        return view.finished.value, view.finished.weights
    return (None if view.best is None else view.value(view.best)), view.of
