"""How much tasks have in common."""

import numpy as np

from paceline import TraceModel
from paceline.model.law.task_correlation import task_correlation
from tests.model.example_runs import task_runs

RUNS = [run for task, shift in (("a", 0.0), ("b", 0.5), ("c", 2.0)) for run in task_runs(task, 3, shift=shift)]


def test_it_is_the_kernel_between_the_locations_of_the_tasks() -> None:
    correlation = task_correlation(RUNS, 2)
    locations = list(TraceModel.fit(RUNS, tasks=2, intervals=10, clock="log").task_embedding.values())
    r = 5**0.5 * np.linalg.norm(np.array(locations)[:, None] - np.array(locations), axis=-1)
    np.testing.assert_allclose(correlation, (1 + r + r**2 / 3) * np.exp(-r), atol=1e-9)
    np.testing.assert_allclose(np.diag(correlation), 1)


def test_without_dimensions_tasks_are_not_correlated() -> None:
    np.testing.assert_allclose(task_correlation(RUNS, 0), np.eye(3), atol=1e-12)
