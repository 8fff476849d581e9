"""Ranges and ticks of axes."""

import math

import pytest

from paceline.views.figures.axes import clip_to_axis, log_ticks, rate_axis, value_axis
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_positive_values_over_half_a_decade_have_a_log_scale() -> None:
    axis = value_axis([0.1, 0.2, 1.0])
    assert axis["type"] == "log"
    low, high = axis["range"]
    assert low < -1 < 0 < high
    assert value_axis([0.5, 1.0])["type"] == "linear"
    assert value_axis([-0.1, 0.2, 1.0])["type"] == "linear"
    assert value_axis([0.1, 0.2, 1.0], linear=True)["type"] == "linear"
    assert value_axis([math.nan]) == {"type": "linear"}


def test_values_far_outside_do_not_set_the_range() -> None:
    axis = value_axis([1.0, 1.1, 1.2], [1.35, 5.0, 1e60])
    low, high = axis["range"]
    assert low < 1.0
    assert 1.35 < high < 5.0


def test_marks_move_to_the_edge() -> None:
    assert clip_to_axis([0.5, 1e60], {"type": "linear", "range": [0, 2]}) == [0.5, 2]
    assert clip_to_axis([1e-9, 5.0], {"type": "log", "range": [-1, 1]}) == [0.1, 5.0]
    assert clip_to_axis([1e60], {"type": "linear"}) == [1e60]


def test_the_rate_axis_holds_the_bounds() -> None:
    low, high = rate_axis(study_view(STUDY))["range"]
    assert low < -3
    assert high > 0
    low, high = rate_axis(study_view([]), [0.01, 0.1, 0.0])["range"]
    assert low < -2
    assert high > -1


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.1, 1.0, [0.1, 0.2, 0.5, 1.0]),
        (0.01, 1.0, [0.01, 0.03, 0.1, 0.3, 1.0]),
        (1e-4, 1.0, [1e-4, 1e-3, 1e-2, 0.1, 1.0]),
        (1e-12, 1.0, [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0]),
    ],
)
def test_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high)["tickvals"] == pytest.approx(ticks)


def test_labels_of_ticks() -> None:
    assert log_ticks(0.001, 0.1)["ticktext"] == ["0.001", "0.003", "0.01", "0.03", "0.1"]
    assert log_ticks(100, 1e4)["ticktext"] == ["100", "300", "1,000", "3,000", "10,000"]
    assert log_ticks(1e6, 1e7)["ticktext"] == ["1e+06", "2e+06", "5e+06", "1e+07"]
