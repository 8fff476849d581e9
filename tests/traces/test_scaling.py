"""Scaling: intervals near one, both directions, and values that outgrow their units."""

import numpy as np
import pytest

from paceline import Objective, Schedule, Trace
from paceline.traces import Clock, Scaling, Segment, Segmenter


def segments(values: np.ndarray) -> list[Segment]:
    """Two intervals of 50 steps at rates 0.1 and 0.01; `values` are an accuracy at steps 0, 10, ..., 100."""
    trace = Trace(np.arange(0, 101, 10), values, Schedule([0.1, 0.01], [0, 50, 100]), objective=Objective("max"))
    return Segmenter(Clock("step", 100), np.array([0, 50, 100]), 1, None, trace.objective).split(trace)


def test_values_times_and_rates_come_near_one() -> None:
    scaling = Scaling.of(segments(np.linspace(2.0, 6.0, 11)))
    assert (scaling.offset, scaling.scale, scaling.interval) == pytest.approx((2.0, 4.0, 50.0))
    assert (scaling.lr_range.low, scaling.lr_range.high) == pytest.approx((0.01, 0.1))
    np.testing.assert_allclose(scaling.to_scaled(np.array([2.0, 6.0])), [0, 1])
    np.testing.assert_allclose(scaling.to_model(scaling.to_scaled(np.array([3.3]))), [3.3])


def test_given_bounds_are_kept() -> None:
    assert Scaling.of(segments(np.linspace(2.0, 6.0, 11)), (1e-3, 1.0)).lr_range.low == 1e-3


def test_constant_values_are_scaled_by_their_size() -> None:
    assert Scaling.of(segments(np.full(11, -5.0))).scale == 5.0
    assert Scaling.of(segments(np.zeros(11))).scale == 1.0


def test_values_outgrow_their_units_at_half_more() -> None:
    scaling = Scaling.of(segments(np.linspace(0.0, 1.0, 11)))
    assert not scaling.is_outgrown_by(segments(np.linspace(0.0, 1.4, 11)))
    assert scaling.is_outgrown_by(segments(np.linspace(0.0, 1.6, 11)))
    assert scaling.is_outgrown_by(segments(np.linspace(-0.6, 0.5, 11)))
    assert not scaling.is_outgrown_by([])
