"""Bounds of the learning rate and the map to the unit interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import InputError, LearningRateRange


@given(st.floats(1e-10, 1e2), st.floats(1.001, 1e6), st.floats(0, 1))
def test_from_unit_inverts_to_unit(low: float, ratio: float, x: float) -> None:
    bounds = LearningRateRange(low, low * ratio)
    assert float(bounds.to_unit(bounds.from_unit(x))) == pytest.approx(x, abs=1e-6)
    assert float(bounds.to_unit(low)) == pytest.approx(0.0, abs=1e-9)


def test_the_middle_is_the_geometric_mean() -> None:
    bounds = LearningRateRange(1e-4, 1e-2)
    assert bounds.decades == pytest.approx(2)
    assert float(bounds.from_unit(0.5)) == pytest.approx(1e-3)
    assert float(bounds.log10_to_unit(np.array(-2.0))) == pytest.approx(1.0)


def test_around_holds_the_rates_and_adds_a_margin_to_equal_ones() -> None:
    assert LearningRateRange.around(np.array([-3.0, -1.0])).high == pytest.approx(0.1)
    bounds = LearningRateRange.around(np.array([-3.0, -3.0]))
    assert (bounds.low, bounds.high) == pytest.approx((10**-3.5, 10**-2.5))


def test_a_pair_is_a_range() -> None:
    assert LearningRateRange.of((1e-4, 1e-2)) == LearningRateRange(1e-4, 1e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LearningRateRange(0.1, 0.001), r"0 < low < high, got \(0.1, 0.001\): swap them"),
        (lambda: LearningRateRange(0.0, 0.1), "pass two different positive numbers"),
        (lambda: LearningRateRange(-1.0, 0.1), "pass two different positive numbers"),
        (lambda: LearningRateRange(0.1, 0.1), "pass two different positive numbers"),
        (lambda: LearningRateRange.of(1e-3), r"a pair \(low, high\), got 0.001"),
        (lambda: LearningRateRange(0.1, np.inf), "must be finite"),
        (lambda: LearningRateRange(0.1, 1.0).to_unit(np.array([0.5, 0.0])), "rates must be positive, got 0"),
    ],
)
def test_wrong_arguments_say_what_to_do(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
