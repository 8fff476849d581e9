"""Where the model of a family sees its tasks, and a new task among them."""

from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from paceline.views.data import StudyView

CIRCLE = 48


class Place(NamedTuple):
    """A task and where it lies, on the first two principal axes at most."""

    task: str
    at: tuple[float, ...]


class NewPlace(NamedTuple):
    """Where a new task may lie: the mean, two standard deviations about it, and probable places with their weights."""

    mean: tuple[float, ...]
    outline: tuple[tuple[float, ...], ...]
    points: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


def places(view: StudyView) -> tuple[Place, ...]:
    """Known tasks as of the latest decision; none where there is no embedding or it has no dimension."""
    return tuple(Place(task, tuple(float(x) for x in at[:2])) for task, at in view.embedding.items() if len(at))


def new_place(view: StudyView) -> NewPlace | None:
    """The new task of a family, as of the latest decision that says where it lies."""
    for decision in reversed(view.decisions):
        if "place" in decision.details:
            said = decision.details["place"]
            mean = tuple(float(x) for x in said["mean"][:2])
            covariance = np.array(said["covariance"], dtype=float)[:2, :2]
            points = tuple(tuple(float(x) for x in point[:2]) for point in said["points"])
            return NewPlace(mean, _outline(mean, covariance), points, tuple(float(w) for w in said["weights"]))
    return None


def _outline(mean: tuple[float, ...], covariance: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Two standard deviations: both ends on one axis, an ellipse on two."""
    if len(mean) == 1:
        reach = 2 * float(max(covariance[0, 0], 0.0)) ** 0.5
        return (mean[0] - reach,), (mean[0] + reach,)
    lengths, axes = np.linalg.eigh(covariance)
    reach = 2 * np.sqrt(np.clip(lengths, 0, None))
    turns = [2 * pi * i / CIRCLE for i in range(CIRCLE + 1)]
    ring = [axes @ (reach * np.array([cos(turn), sin(turn)])) for turn in turns]
    return tuple((mean[0] + float(x), mean[1] + float(y)) for x, y in ring)
