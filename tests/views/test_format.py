"""Numbers, progress, costs and schedules as text."""

from paceline.traces import Schedule
from paceline.views.data import Band
from paceline.views.format import (
    bound_advice,
    format_band,
    format_cost,
    format_number,
    format_progress,
    format_range,
    format_schedule,
    format_seconds,
)
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_progress_and_cost() -> None:
    view = study_view(STUDY)
    assert format_progress(view) == "160 of 180 steps (89 %)"
    assert format_progress(view, 1_200) == "1,200 of 180 steps (667 %)"
    assert format_progress(study_view([])) == "0 of 0 steps (0 %)"
    assert format_cost(9_100, 4_000) == "9,100 steps in all, as many as 2.27 runs of 4,000"


def test_durations() -> None:
    assert [format_seconds(s) for s in (0.000246, 0.377, 3.96, 264.0)] == ["0.246 ms", "377 ms", "3.96 s", "264 s"]


def test_numbers_and_forecasts() -> None:
    assert [format_number(value) for value in (None, 0.123456, 12_345.0)] == ["-", "0.1235", "1.234e+04"]
    band = Band(1_000, 0.2, 0.3, 0.4, "raw")
    assert format_range(band) == "0.3 (0.2 to 0.4)"
    assert format_band(band) == "0.3 (0.2 to 0.4) at step 1,000"
    assert format_band(None) == ""


def test_a_schedule_at_a_bound_says_so() -> None:
    schedule = Schedule([0.06, 0.1], [0, 10, 100])
    assert bound_advice(schedule, (0.001, 0.1)) == [
        "it lies at the upper bound, 0.1: the best may lie beyond, move that up by a decade"
    ]
    assert "lower bound, 0.1: the best may lie beyond, move that down" in bound_advice(schedule, (0.1, 1.0))[0]
    assert bound_advice(schedule, (0.001, 1.0)) == []
    assert bound_advice(Schedule([0.06, 0.1], [0, 60, 100]), (0.001, 0.1)) == [], "for the smaller part only"
    assert bound_advice(schedule, ()) == []


def test_schedules_in_words() -> None:
    assert format_schedule(Schedule([0.1], [0, 50], 100)) == "rate 0.1 to the end"
    words = format_schedule(Schedule([0.1, 0.1, 0.2], [0, 1000, 1500, 2000], base="one_cycle"))
    assert words == "peak rate 0.1 until step 1,500, 0.2 to the end, times a one-cycle base"
