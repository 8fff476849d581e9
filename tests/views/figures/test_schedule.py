"""The rate of a schedule."""

from paceline.traces import Schedule
from paceline.views.figures.schedule import schedule_figure
from paceline.views.figures.style import DARK


def test_rates_have_corners() -> None:
    figure = schedule_figure(Schedule([1e-2, 1e-3], [0, 50, 100]))
    (line,) = figure.data
    assert list(zip(line.x, line.y, strict=True)) == [(0, 1e-2), (50, 1e-2), (50, 1e-3), (100, 1e-3)]
    assert figure.layout.yaxis.type == "log"


def test_a_rate_that_decays_to_zero_leaves_the_figure() -> None:
    figure = Schedule.of("linear", 1e-2, 1_000).plot(dark=True)
    assert figure.layout.paper_bgcolor == DARK.paper
    assert 10 ** figure.layout.yaxis.range[0] > 1e-7  # otherwise the rest would be flat
