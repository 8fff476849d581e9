"""The clocks of the model: origin, readings, equal intervals."""

import numpy as np
import pytest

from paceline import InputError
from paceline.traces import Clock


def test_the_step_clock_reads_steps() -> None:
    clock = Clock("step", 1000)
    assert clock.origin == 0
    assert clock(np.array([0, 10, 999])).tolist() == [0, 10, 999]
    assert clock.equal_intervals(4).tolist() == [0, 250, 500, 750, 1000]


def test_the_log_clock_starts_at_one_percent() -> None:
    clock = Clock("log", 1000)
    assert clock.origin == 10
    np.testing.assert_allclose(clock(np.array([0, 10, 100, 1000])), np.log([1, 1, 10, 100]))
    assert clock.equal_intervals(2).tolist() == [10, 100, 1000]


def test_more_intervals_than_the_log_clock_has_steps_are_merged() -> None:
    points = Clock("log", 20).equal_intervals(20)
    assert np.all(np.diff(points) >= 1)
    assert (points[0], points[-1]) == (1, 20)


def test_more_intervals_than_steps_are_refused() -> None:
    with pytest.raises(InputError, match="between 1 and the 10 steps of the run, got 20"):
        Clock("step", 10).equal_intervals(20)
