"""Objective and LearningRateRange."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import InputError, LearningRateRange, Objective

positive = st.floats(1e-12, 1e12)


@given(positive, st.sampled_from(["min", "max"]), st.sampled_from(["identity", "log"]))
def test_objective_goes_there_and_back(value: float, mode, transform) -> None:
    objective = Objective(mode=mode, transform=transform)
    assert objective.to_user(objective.to_model(np.array([value])))[0] == pytest.approx(value, rel=1e-12)


@given(positive, positive)
def test_bigger_is_better_inside(a: float, b: float) -> None:
    for mode in ("min", "max"):
        for transform in ("identity", "log"):
            inside = Objective(mode=mode, transform=transform).to_model(np.array([a, b]))
            better = a < b if mode == "min" else a > b
            assert better == (inside[0] > inside[1]) or inside[0] == inside[1]


@given(st.floats(1e-10, 1e2), st.floats(1.001, 1e6), st.floats(0, 1))
def test_unit_interval_goes_there_and_back(low: float, ratio: float, x: float) -> None:
    bounds = LearningRateRange(low, low * ratio)
    assert float(bounds.to_unit(bounds.from_unit(x))) == pytest.approx(x, abs=1e-6)
    assert float(bounds.to_unit(low)) == pytest.approx(0.0, abs=1e-9)


def test_around_equal_rates_has_a_margin() -> None:
    bounds = LearningRateRange.around(np.array([-3.0, -3.0]))
    assert (bounds.low, bounds.high) == pytest.approx((10**-3.5, 10**-2.5))


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
        (lambda: Objective(transform="log").to_model(np.array([1.0, -2.0])), "smallest value of -2"),
    ],
)
def test_bad_values_say_what_to_do(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
