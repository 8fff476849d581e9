"""The figure of a plan."""

import pytest

from paceline.views.figures.plan import plan_figure
from tests.views.plans import RUN, VIEW


def test_recorded_runs_and_the_plan_with_its_band() -> None:
    figure = plan_figure(VIEW)
    named = {trace.name: trace for trace in figure.data if trace.showlegend is not False}
    assert set(named) == {"2 recorded runs", "the best of them", "the plan: forecast and 90 % band"}
    plan = named["the plan: forecast and 90 % band"]
    assert (plan.x, plan.y) == (VIEW.forecast.steps, VIEW.forecast.median)
    (band,) = [trace for trace in figure.data if trace.fill == "toself"]
    assert set(band.y) == {*VIEW.forecast.low, *VIEW.forecast.high}
    rates = figure.data[-1]
    assert rates.yaxis == "y2"
    assert [rates.y[step] for step in (0, 500)] == [VIEW.schedule(0), VIEW.schedule(500)]


@pytest.mark.parametrize("view", [VIEW._replace(best=None), VIEW._replace(runs=(RUN,), steps=2000)])
def test_one_run_or_no_best_run(view: object) -> None:
    figure = plan_figure(view)  # type: ignore[arg-type]
    assert "the best of them" not in {trace.name for trace in figure.data}
    assert figure.layout.xaxis2.range[1] == view.steps  # type: ignore[attr-defined]
