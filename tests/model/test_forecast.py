"""Forecasts: quantiles, bands, and checks of what is asked."""

import numpy as np
import pytest

from paceline import InputError
from paceline.model.forecast import Forecast, check_draws, check_steps

FORECAST = Forecast(np.array([10, 20]), np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]]))


def test_means_quantiles_and_bands_are_over_the_draws() -> None:
    assert FORECAST.mean.tolist() == [2.0, 30.0]
    assert FORECAST.median.tolist() == [2.0, 20.0]
    assert FORECAST.quantile(1.0).tolist() == [3.0, 60.0]
    low, high = FORECAST.band(0.5)
    assert (low.tolist(), high.tolist()) == ([1.5, 15.0], [2.5, 40.0])


def test_steps_become_an_array() -> None:
    assert check_steps([3, 5], 3).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FORECAST.band(90), r"share in \(0, 1\), got 90"),
        (lambda: check_steps([50, 50], 0), "must increase, from step 0 or later"),
        (lambda: check_steps([5], 20), r"from step 20 or later, got \[5\]"),
        (lambda: check_steps([], 0), r"got \[\]"),
        (lambda: check_draws(0), "draws must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
