"""The rules of a run without forks: where its peak begins, and how it is corrected."""

import numpy as np
import pytest

from paceline import InputError
from paceline.strategy.single_run.rules import (
    correction_steps,
    initial_loss,
    loss_limit,
    loss_slope,
    peak_change,
    peaks_from_range_test,
    range_test_steps,
)
from paceline.strategy.single_run.single_run_settings import ESTIMATED, MEASURED, SINGLE_RUN

RATES = np.linspace(-4.0, 0.0, 101)
DROP = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (RATES + 2.0)))  # from 2 to 1 around a rate of 0.01


@pytest.mark.parametrize(
    ("steps", "length"), [(20, 4), (100, 20), (200, 40), (799, 40), (800, 40), (1000, 50), (2000, 100)]
)
def test_in_a_short_run_the_range_test_is_long_enough_to_be_read(steps: int, length: int) -> None:
    assert range_test_steps(steps) == length


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(InputError, match="steps must be at least 20, got 19"):
        range_test_steps(19)


def test_a_limit_lies_above_the_first_loss_also_if_that_is_negative() -> None:
    assert loss_limit(-2.0, 1.5) == -1.0
    assert loss_limit(2.0, 1.5) == 3.0


def test_the_first_loss_is_a_mean_over_the_lowest_rates() -> None:
    losses = np.where(RATES[0] + SINGLE_RUN.smoothing_decades > RATES, 2.0, 1.0) + 0.1 * (-1.0) ** np.arange(101)
    assert initial_loss(RATES, losses) == pytest.approx(2.0, abs=0.01)


def test_the_peak_is_where_most_of_the_drop_is_reached_but_well_below_where_it_is_lost() -> None:
    first, highest = peaks_from_range_test(RATES, DROP)
    assert first == pytest.approx(-1.9, abs=0.15)
    assert highest == np.inf
    first, highest = peaks_from_range_test(RATES, np.where(RATES > -1.5, 1e6, DROP))
    assert first == pytest.approx(-1.6 - SINGLE_RUN.first_peak_gap, abs=0.15)
    assert highest == pytest.approx(-1.6 - SINGLE_RUN.max_peak_gap, abs=0.15)
    diverging_last = np.where(RATES < 0.0, DROP, np.inf)
    assert peaks_from_range_test(RATES, diverging_last)[1] == pytest.approx(-0.15, abs=0.05)


def test_without_a_finite_loss_the_peak_is_the_lowest_rate() -> None:
    assert peaks_from_range_test(RATES, np.full(101, np.inf)) == (-4.0, np.inf)


def test_corrections_are_evenly_spaced_in_log_time_from_6_to_50_percent() -> None:
    steps = correction_steps(10_000)
    assert (steps[0], steps[-1], len(steps)) == (600, 5000, 12)
    assert np.ptp(np.diff(np.log(steps))) < 0.01
    assert correction_steps(16) == sorted(set(correction_steps(16)))


def test_the_slope_is_against_log_time() -> None:
    steps = np.arange(10.0, 100.0)
    assert loss_slope(steps, 3.0 - 0.5 * np.log(steps)) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("noise", "progress", "change"),
    [(0.9, 1.0, 0.0), (0.9 * 1e3, 1.0, -0.2), (-0.14, 1.0, 0.15), (1.0, 0.0, -0.2), (1.0, -1.0, -0.2)],
)
def test_much_noise_for_little_progress_lowers_the_peak(noise: float, progress: float, change: float) -> None:
    assert peak_change(noise, progress, 0.5) == pytest.approx(change)


@pytest.mark.parametrize("target", [MEASURED, ESTIMATED])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_at_the_target_the_peak_stays(target, share: float) -> None:
    """rho = growth * share, and the change follows clip(0.1 ln((drift + growth * share) / (rho + drift)))."""
    assert peak_change(target.growth * share, 1.0, share, target) == pytest.approx(0.0)
    ratio = 0.6 * target.growth * share
    expected = 0.1 * np.log((target.drift + target.growth * share) / (ratio + target.drift))
    assert peak_change(2.0 * ratio, 2.0, share, target) == pytest.approx(expected)
