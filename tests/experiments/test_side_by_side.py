"""Runs side by side take the steps of single trainings."""

import numpy as np
import pytest

from experiments._side_by_side import PlannedRun, side_by_side
from experiments._svgp import EVERY, Images, training
from paceline import Schedule
from tests.experiments.blurred_strokes import blurred_strokes

STEPS = 2 * EVERY
SCHEDULE = Schedule([1e-2, 1e-3], [0, EVERY, STEPS])


@pytest.fixture(scope="module")
def data() -> Images:
    return blurred_strokes()


def test_runs_side_by_side_are_those_of_single_trainings(data: Images) -> None:
    other = Schedule.constant(1e-3, STEPS)
    steps, values = side_by_side([PlannedRun(data, SCHEDULE, 5), PlannedRun(data, other, 6)], steps=STEPS)
    for row, (schedule, seed) in zip(values, ((SCHEDULE, 5), (other, 6)), strict=True):
        alone = dict(training(data, seed).advance(schedule, STEPS))
        assert list(alone) == steps.tolist()
        np.testing.assert_allclose(row, [value["raw"] for value in alone.values()], rtol=1e-4)
    assert values[0, -1] < values[0, 0]


def test_a_run_that_fails_does_not_stop_those_beside_it(data: Images) -> None:
    wild = Schedule.constant(1e20, STEPS)
    _, values = side_by_side([PlannedRun(data, wild, 5), PlannedRun(data, SCHEDULE, 5)], steps=STEPS)
    assert np.isnan(values[0, -1])
    assert np.isfinite(values[1]).all()
