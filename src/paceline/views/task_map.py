"""The tasks of a family in the model's embedding, and the posterior of a new task among them."""

from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from paceline.views.data import StudyView

OUTLINE_POINTS = 48
OUTLINE_DEVIATIONS = 2


class TaskLocation(NamedTuple):
    """A task and its coordinates on the first principal axes, two at most."""

    task: str
    location: tuple[float, ...]


class NewTaskPosterior(NamedTuple):
    """Where a new task may lie: the mean, two standard deviations around it, and locations with their weights."""

    mean: tuple[float, ...]
    outline: tuple[tuple[float, ...], ...]
    locations: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


def task_locations(view: StudyView) -> tuple[TaskLocation, ...]:
    """The tasks that the model knew at the latest decision; empty if the embedding has no dimension."""
    return tuple(
        TaskLocation(task, tuple(float(x) for x in location[:2]))
        for task, location in view.embedding.items()
        if len(location)
    )


def new_task_posterior(view: StudyView) -> NewTaskPosterior | None:
    """The posterior of a new task at the latest decision that has one."""
    for decision in reversed(view.decisions):
        if "location" in decision.details:
            data = decision.details["location"]
            mean = tuple(float(x) for x in data["mean"][:2])
            covariance = np.array(data["covariance"], dtype=float)[:2, :2]
            locations = tuple(tuple(float(x) for x in point[:2]) for point in data["samples"])
            weights = tuple(float(weight) for weight in data["weights"])
            return NewTaskPosterior(mean, _outline(mean, covariance), locations, weights)
    return None


def _outline(mean: tuple[float, ...], covariance: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Two standard deviations around the mean: both ends on one axis, an ellipse on two."""
    if len(mean) == 1:
        reach = OUTLINE_DEVIATIONS * float(max(covariance[0, 0], 0.0)) ** 0.5
        return (mean[0] - reach,), (mean[0] + reach,)
    variances, axes = np.linalg.eigh(covariance)
    reach = OUTLINE_DEVIATIONS * np.sqrt(np.clip(variances, 0, None))
    angles = [2 * pi * i / OUTLINE_POINTS for i in range(OUTLINE_POINTS + 1)]
    ellipse = [axes @ (reach * np.array([cos(angle), sin(angle)])) for angle in angles]
    return tuple((mean[0] + float(x), mean[1] + float(y)) for x, y in ellipse)
