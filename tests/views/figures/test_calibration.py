"""Levels of observations in their forecasts."""

from paceline.views.figures.calibration import calibration
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_the_quantiles_of_the_journal_are_marked() -> None:
    figure = calibration(study_view(STUDY))
    quantiles = next(trace for trace in figure.data if trace.name == "quantiles")
    assert (list(quantiles.x), list(quantiles.y)) == ([0.05, 0.5, 0.95], [0.0, 0.0, 0.0])
    assert any("0 % of 2 inside" in note.text for note in figure.layout.annotations)


def test_every_observation_has_its_level() -> None:
    figure = calibration(study_view(STUDY))
    points = {trace.name: trace for trace in figure.data if trace.yaxis == "y2"}
    assert list(points["outside"].x) == [60, 100]
    assert all(level > 0.95 for level in points["outside"].y)
    assert list(points["inside the band"].x) == []
    assert calibration(study_view(STUDY[:10])) is None
