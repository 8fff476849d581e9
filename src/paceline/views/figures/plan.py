"""A plan of the next run: the recorded runs, and the schedule of the plan with its forecast."""

from math import ceil, isfinite, log10
from typing import Any

from paceline.views.figures.axes import log_ticks, step_axis, value_axis
from paceline.views.figures.labels import label
from paceline.views.figures.panels import LineStyle, add_lines, value_and_rate_panels
from paceline.views.figures.style import LIGHT, Figure, graph_objects, set_layout
from paceline.views.plan import PlanView, RunLine

MAX_RATE_POINTS = 2_000
LOWEST_RATE_SHARE = 1 / 200  # of the highest rate: a rate that decays to zero leaves the figure here


def plan_figure(view: PlanView) -> Figure:
    """Values above and rates below: recorded runs, the best of them in bold, and the plan with its 90 % band."""
    figure, count = value_and_rate_panels(), len(view.runs)
    recorded = LineStyle(f"{count} recorded run{'s' * (count > 1)}", LIGHT.dropped, 0.9)
    _add_runs(figure, view.runs, recorded)
    if view.best is not None and count > 1:
        _add_runs(figure, (view.best,), LineStyle("the best of them", LIGHT.ended, 1.8))
    for trace in _forecast_traces(view):
        figure.add_trace(trace, row=1, col=1)
    figure.add_trace(_rate_trace(view), row=2, col=1)
    set_layout(figure, "", height=600)
    figure.update_layout(margin_t=56)
    _set_axes(figure, view)
    return figure


def _add_runs(figure: Figure, runs: tuple[RunLine, ...], look: LineStyle) -> None:
    add_lines(figure, runs, look, keys=[label(run.name) for run in runs], hover="%{customdata}")


def _forecast_traces(view: PlanView) -> list[Any]:
    """The band, and the median above it."""
    scatter, forecast = graph_objects().Scatter, view.forecast
    band = scatter(
        x=[*forecast.steps, *reversed(forecast.steps)],
        y=[*forecast.low, *reversed(forecast.high)],
        mode="lines",
        fill="toself",
        fillcolor=LIGHT.best_band,
        line_width=0,
        hoverinfo="skip",
        legendgroup="plan",
        showlegend=False,
    )
    median = scatter(
        x=forecast.steps,
        y=forecast.median,
        mode="lines",
        line={"color": LIGHT.best, "width": 2.5},
        name="the plan: forecast and 90 % band",
        legendgroup="plan",
        customdata=list(zip(forecast.low, forecast.high, strict=True)),
        hovertemplate="the plan, step %{x:,}: %{y:.4g} (%{customdata[0]:.4g} to %{customdata[1]:.4g})<extra></extra>",
    )
    return [band, median]


def _rate_trace(view: PlanView) -> Any:
    steps = range(0, view.steps, ceil(view.steps / MAX_RATE_POINTS))
    return graph_objects().Scatter(
        x=list(steps),
        y=[float(view.schedule(step)) for step in steps],
        mode="lines",
        line={"color": LIGHT.best, "width": 2.5},
        legendgroup="plan",
        showlegend=False,
        hovertemplate="the plan, step %{x:,}: %{y:.4g}<extra></extra>",
    )


def _set_axes(figure: Figure, view: PlanView) -> None:
    recorded = [value for run in view.runs for value in run.values if isfinite(value)]
    figure.update_yaxes(value_axis(view.forecast.median, [*recorded, *view.forecast.low]), title_text="value", row=1)
    peaks = [max(run.rates) for run in view.runs if run.rates]
    high = 2 * max(*peaks, view.plan.peak)
    low = min(*peaks, view.plan.peak, 2 * LOWEST_RATE_SHARE * high) / 2
    figure.update_yaxes(type="log", range=[log10(low), log10(high)], **log_ticks(low, high), row=2)
    figure.update_yaxes(title_text="learning rate", row=2)
    figure.update_xaxes({**step_axis(), "title_text": ""}, row=1)
    last = max([view.steps, *(run.steps[-1] for run in view.runs if run.steps)])
    figure.update_xaxes({**step_axis(), "range": [0, last]}, row=2)
