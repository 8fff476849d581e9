"""Bands of forecasts, their slider, and the final values of families."""

import pytest

from paceline.views.bands import checks, forecast_bands
from paceline.views.figures.forecasts import forecasts
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_bands_are_those_of_the_journal_with_a_slider_over_decisions() -> None:
    view = study_view(golden("journal-1-greedy"))
    figure = forecasts(view)
    journal = next(d for d in view.decisions if "forecast" in d.details).details["forecast"]
    assert {*journal[0]["low"], *journal[0]["high"]} <= set(figure.data[0].y)
    slider = figure.layout.sliders[0]
    assert [step.label.split(",")[0] for step in slider.steps] == ["all", "2", "3", "4"]
    assert all(len(step.args[0]["visible"]) == len(figure.data) for step in slider.steps)
    assert all(slider.steps[0].args[0]["visible"])
    assert [sum(step.args[0]["visible"]) for step in slider.steps[1:]] == [8, 8, 8]  # a round has 4, the legend 4


def test_observations_outside_the_band_are_marked() -> None:
    figure = forecasts(study_view(STUDY))
    misses = figure.data[3]
    assert list(misses.x) == [60, 100]
    assert [list(row) for row in misses.customdata] == [[2, 0.4, 0.6, 0.8], [2, 0.2, 0.4, 0.45]]


def test_the_final_value_of_each_run_of_a_family_is_beside_its_forecast() -> None:
    view = study_view(golden("journal-1-family"))
    bands = forecast_bands(view)
    figure = forecasts(view)
    bars = figure.data[0]
    assert list(bars.x) == [f"run {band.fork}" for band in bands]
    assert list(bars.y) == [band.median[0] for band in bands]
    upper = [median + more for median, more in zip(bars.y, bars.error_y.array, strict=True)]
    assert upper == pytest.approx([band.high[0] for band in bands])
    observed = {x for trace in figure.data[1:] for x in trace.x}
    assert observed == {f"run {check.fork}" for band in bands for check in checks(band)}


def test_forecasts_that_nothing_has_followed_yet_are_inside_the_axis() -> None:
    view = study_view(STUDY[:10])
    (band,) = forecast_bands(view)
    assert band.observed_values == ()
    low, high = forecasts(view).layout.yaxis.range
    low, high = (10**low, 10**high) if forecasts(view).layout.yaxis.type == "log" else (low, high)
    assert low < min(band.median)
    assert band.start_value < high
