"""An interval is slow if it takes several times as long per step as the others."""

import pytest

from paceline.runner.ray.step_times import StepTimes


def test_nothing_is_slow_before_anything_was_finished() -> None:
    assert not StepTimes(patience=4.0, slow_after=5.0).is_slow(1e9, 1)


@pytest.mark.parametrize(
    ("seconds", "steps", "is_slow"), [(39.9, 10, False), (40.0, 10, True), (40.0, 11, False), (4.0, 0, False)]
)
def test_patience_is_times_the_median_per_step(seconds: float, steps: int, is_slow: bool) -> None:
    times = StepTimes(patience=4.0, slow_after=5.0)
    for taken in (5.0, 10.0, 1000.0):
        times.add(taken, 10)
    assert times.is_slow(seconds, steps) == is_slow


def test_no_interval_is_slow_in_its_first_seconds() -> None:
    times = StepTimes(patience=4.0, slow_after=5.0)
    times.add(0.001, 100)
    assert not times.is_slow(4.9, 100)
    assert times.is_slow(5.0, 100)


def test_intervals_without_steps_count_as_one_step() -> None:
    times = StepTimes(patience=2.0, slow_after=0.0)
    times.add(3.0, 0)
    assert not times.is_slow(5.9, 0)
    assert times.is_slow(6.0, 0)
