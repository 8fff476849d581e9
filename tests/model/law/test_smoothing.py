"""Smoothing: noise from second differences, stretches of log steps, thinning."""

import numpy as np
import pytest

from paceline.model.law.settings import ROWS
from paceline.model.law.smoothing import averaging, noise_level, running_mean, stretches, thin


def test_stretches_are_equal_in_log_steps_and_none_is_empty() -> None:
    number = stretches(np.arange(10, 1001), 5)
    assert np.unique(number).tolist() == list(range(5))
    ends = np.arange(10, 1001)[np.flatnonzero(np.diff(number, append=5))]
    np.testing.assert_allclose(np.diff(np.log(ends)), np.log(100) / 5, rtol=0.05)
    assert stretches(np.array([1, 1000]), 40).tolist() == [0, 1]
    assert stretches(np.array([7]), 40).tolist() == [0]


def test_noise_is_measured_by_second_differences() -> None:
    random, steps = np.random.default_rng(0), np.arange(1, 2001)
    level = 3.0 * steps**-0.4
    np.testing.assert_allclose(noise_level(level, level * (1 + 0.05 * random.standard_normal(2000))), 0.05, rtol=0.8)
    assert np.mean(noise_level(level, level * (1 + 0.05 * random.standard_normal(2000)))) == pytest.approx(
        0.05, rel=0.05
    )
    assert noise_level(level, level).max() < 2e-4 + 0.01  # a steep, smooth beginning is hardly noise
    assert noise_level(np.ones(3), np.ones(3)).tolist() == [ROWS.unknown_noise] * 3


def test_thinning_keeps_the_ends_of_each_stretch() -> None:
    stretch = np.repeat([0, 1, 2], [1, 10, 1000])
    assert thin(stretch, 1011).tolist() == list(range(1011))
    some = thin(stretch, 30)
    assert len(some) <= 30
    assert {0, 1, 10, 11, 1010} <= set(some.tolist())
    assert thin(stretch, 2).tolist() == [0, 1, 11]


def test_averages_are_over_each_stretch() -> None:
    mean, count = averaging(np.array([0, 0, 1]))
    assert (mean @ np.array([1.0, 3.0, 5.0])).tolist() == [2.0, 5.0]
    assert count.tolist() == [2, 1]


def test_the_running_mean_is_over_a_window_in_log_steps() -> None:
    steps = np.arange(1, 1001)
    smooth = running_mean(steps, steps.astype(float))
    inside = np.abs(np.log(steps) - np.log(100)) <= ROWS.window
    assert smooth[99] == pytest.approx(steps[inside].mean(), abs=0.6)
