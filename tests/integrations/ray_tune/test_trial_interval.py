"""What a trial has reported of its interval."""

import math

import pytest

pytest.importorskip("ray.tune")

from paceline.integrations.ray_tune.trial_interval import TrialInterval
from paceline.study import Interval
from paceline.traces import Schedule


def make() -> TrialInterval:
    return TrialInterval(Interval(0, None, 0, 3, Schedule.constant(0.1, 9), 1), (0, 0))


def test_it_is_done_at_its_end_and_counts_an_iteration_once() -> None:
    trial = make()
    assert not trial.is_done
    for step, value in ((1, 3.0), (2, 2.0), (2, 9.0), (1, 9.0)):
        trial.observe(step, value)
    assert (trial.steps, trial.values) == ([1, 2], [3.0, 2.0])
    assert not trial.is_done
    trial.observe(3, 1.0)
    assert trial.is_done
    assert trial.is_sound


def test_it_is_done_at_a_value_that_is_not_finite() -> None:
    trial = make()
    trial.observe(1, math.nan)
    assert trial.is_done
    assert not trial.is_sound
