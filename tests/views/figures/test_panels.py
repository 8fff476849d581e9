"""Lines in two panels."""

from paceline.views.figures.panels import LineStyle, add_lines, value_and_rate_panels
from tests.views.plans import RUN


def test_lines_that_look_the_same_are_one_trace_in_each_panel() -> None:
    figure = value_and_rate_panels()
    add_lines(figure, [RUN, RUN], LineStyle("runs", "#000", 1), keys=["a", "b"], hover="%{customdata}")
    values, rates = figure.data
    assert list(values.x) == [*RUN.steps, None, *RUN.steps]
    assert list(values.y) == [*RUN.values, None, *RUN.values]
    assert list(values.customdata) == ["a"] * 4 + ["b"] * 3
    assert list(rates.y) == [*RUN.rates, None, *RUN.rates]
    assert (values.showlegend, rates.showlegend) == (True, False)
    assert (values.yaxis, rates.yaxis) == ("y", "y2")


def test_no_lines_are_no_trace() -> None:
    figure = value_and_rate_panels()
    add_lines(figure, [], LineStyle("runs", "#000", 1), keys=[], hover="")
    assert figure.data == ()
