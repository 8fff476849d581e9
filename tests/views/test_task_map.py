"""Locations of tasks, and of a new one."""

import numpy as np
import pytest

from paceline.study import Decided
from paceline.views.data import StudyView
from paceline.views.projection import study_view
from paceline.views.task_map import new_task_posterior, task_locations
from tests.views.studies import STUDY, golden


def view_with_new_task(mean: list[float], covariance: list[list[float]]) -> StudyView:
    """A study whose only decision has the posterior of a new task and the embedding of another."""
    location = {"mean": mean, "covariance": covariance, "spread": 1.0, "samples": [[1, 2, 3]], "weights": [0.5]}
    details = {"location": location, "embedding": [{"task": "a", "at": [0.0, 0.5, 7.0]}]}
    return study_view([STUDY[0], Decided(1, 0, (), details, 0.0)])


def test_locations_of_tasks() -> None:
    view = study_view(golden("journal-1-family"))
    assert [task.task for task in task_locations(view)] == ["calm", "log", "wild"]
    assert new_task_posterior(view) is None
    assert task_locations(study_view(STUDY)) == ()


def test_only_two_axes_are_kept_and_the_outline_is_two_deviations_away() -> None:
    view = view_with_new_task([1.0, 2.0, 9.0], np.diag([0.25, 0.04, 1.0]).tolist())
    assert task_locations(view) == (("a", (0.0, 0.5)),)
    new_task = new_task_posterior(view)
    assert new_task is not None
    assert (new_task.mean, new_task.locations, new_task.weights) == ((1.0, 2.0), ((1.0, 2.0),), (0.5,))
    x, y = np.array(new_task.outline).T
    assert (x.min(), x.max(), y.min(), y.max()) == pytest.approx((0.0, 2.0, 1.6, 2.4), abs=1e-6)
    assert ((x - 1) ** 2 / 1.0 + (y - 2) ** 2 / 0.16) == pytest.approx(np.ones(len(x)))


def test_the_outline_on_one_axis_is_an_interval() -> None:
    new_task = new_task_posterior(view_with_new_task([1.0], [[0.25]]))
    assert new_task is not None
    assert new_task.outline == ((0.0,), (2.0,))
