"""Forecasts of the journal against the observations that followed."""

from dataclasses import replace
from statistics import NormalDist

import pytest

from paceline.study import Created, Decided, Report
from paceline.views.bands import checks, coverage, forecast_bands, forecast_level
from paceline.views.projection import study_view
from tests.views.studies import FORECAST, STUDY, golden


def test_bands_are_those_of_the_journal_with_the_observations_that_followed() -> None:
    events = golden("journal-1-greedy")
    bands = forecast_bands(study_view(events))
    journal = [(e.round, f) for e in events if isinstance(e, Decided) for f in e.details.get("forecast", [])]
    assert len(bands) == len(journal) > 0
    for band, (number, forecast) in zip(bands, journal, strict=True):
        assert (band.round, band.fork) == (number, forecast["fork"])
        for name in ("steps", "low", "median", "high"):
            assert list(getattr(band, name)) == forecast[name]
        assert all(band.start < step <= band.steps[-1] for step in band.observed_steps)
    first = next(e for e in events if isinstance(e, Report) and e.fork == bands[0].fork)
    assert bands[0].observed_values == first.values["raw"]


def test_in_format_1_a_forecast_of_the_end_is_of_raw_weights() -> None:
    created, *rest = STUDY
    assert isinstance(created, Created)
    strategy = {**created.settings["strategy"], "judge_by": "final"}
    (band,) = forecast_bands(study_view([Created({**created.settings, "strategy": strategy}), *rest]))
    assert (band.weights, band.start_value, band.observed_values) == ("raw", 1.5, (0.9, 0.5))
    (band,) = forecast_bands(study_view(STUDY))
    assert (band.weights, band.start_value, band.observed_values) == ("averaged", 1.6, (0.8, 0.45))


def test_a_forecast_names_the_weights_it_is_of() -> None:
    forecast = [{**FORECAST[0], "weights": "raw"}]
    events = [replace(e, details={**e.details, "forecast": forecast}) if e == STUDY[6] else e for e in STUDY]
    (band,) = forecast_bands(study_view(events))
    assert (band.weights, band.start_value, band.observed_values) == ("raw", 1.5, (0.9, 0.5))


def test_checks_and_coverage_counted_by_hand() -> None:
    (band,) = forecast_bands(study_view(STUDY))
    first, second = checks(band)
    assert (first.step, first.value, first.inside) == (60, 0.8, False)  # the band was 0.4 to 0.6
    assert (second.step, second.value, second.inside) == (100, 0.45, False)
    summary = coverage((first, second, first._replace(value=0.5)))
    assert summary is not None
    assert summary.checks == 3
    assert summary.inside == pytest.approx(1 / 3)
    assert summary.below == ((0.05, 0.0), (0.5, pytest.approx(1 / 3)), (0.95, pytest.approx(1 / 3)))
    assert coverage(()) is None


def test_a_point_that_the_fork_did_not_reach_has_no_check() -> None:
    (band,) = forecast_bands(study_view(STUDY))
    assert checks(band._replace(observed_steps=(), observed_values=())) == ()
    assert checks(band._replace(observed_steps=(24, 28), observed_values=(1.0, 1.0))) == ()  # it failed long before


def test_levels_are_those_of_a_normal_and_exact_at_the_quantiles() -> None:
    normal = NormalDist(3.0, 0.7)
    low, median, high = (normal.inv_cdf(q) for q in (0.05, 0.5, 0.95))
    for q in (0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999):
        assert forecast_level(normal.inv_cdf(q), low, median, high) == pytest.approx(q, abs=1e-9)
    assert [forecast_level(value, 1.0, 1.0, 1.0) for value in (0.0, 1.0, 2.0)] == [0.0, 0.5, 1.0]
