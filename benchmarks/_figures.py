"""The figures of benchmarks: quality against cost, and forecasts of recorded curves."""

from collections.abc import Mapping, Sequence
from math import copysign, log10
from typing import Any, NamedTuple

import numpy as np

from paceline.model import Forecast
from paceline.traces import Trace
from paceline.views.figures import Figure, graph_objects, set_layout, subplots

BLUE, ORANGE, GREEN, SKY, PINK, YELLOW = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00"
BLACK, GREY = "#000000", "#7a7a7a"
SCALE = 1.25  # pixels of an image for each pixel of a page
LINEAR_UP_TO = 10  # percent: beyond, a scale of both signs is logarithmic
PERCENT_TICKS = (-10, -5, 0, 5, 10, 30, 100, 300)


class Methods(NamedTuple):
    """One method at several costs: percent above the best fixed schedule, by the name of the panel."""

    name: str
    colour: str
    marker: str
    costs: tuple[float, ...]
    percent: Mapping[str, Sequence[float]]


def quality_against_cost(methods: Sequence[Methods]) -> Figure:
    """A panel for each group of problems."""
    panels = list(methods[0].percent)
    figure = subplots(rows=1, cols=len(panels), shared_yaxes=True, subplot_titles=panels, horizontal_spacing=0.04)
    for method in methods:
        for column, panel in enumerate(panels, 1):
            points = graph_objects().Scatter(
                x=method.costs,
                y=[_both_signs(value) for value in method.percent[panel]],
                customdata=method.percent[panel],
                mode="lines+markers" if len(method.costs) > 1 else "markers",
                line={"color": method.colour, "width": 2},
                marker={
                    "color": method.colour,
                    "symbol": method.marker,
                    "size": 10,
                    "line": {"color": method.colour, "width": 2 if method.marker.endswith("-thin") else 0},
                },
                name=method.name,
                legendgroup=method.name,
                showlegend=column == 1,
                hovertemplate=f"{method.name}, cost %{{x:g}}: %{{customdata:.1f}} %<extra></extra>",
            )
            figure.add_trace(points, row=1, col=column)
    set_layout(figure, "", height=460)
    figure.add_hline(y=0, line={"color": GREY, "width": 1})
    ticks = {
        "tickvals": [_both_signs(tick) for tick in PERCENT_TICKS],
        "ticktext": [str(tick) for tick in PERCENT_TICKS],
    }
    figure.update_yaxes(range=[_both_signs(PERCENT_TICKS[0]), _both_signs(PERCENT_TICKS[-1])], showgrid=False, **ticks)
    figure.update_yaxes(title_text="final loss, % above the best fixed<br>schedule tuned in hindsight", col=1)
    figure.update_xaxes(title_text="cost: steps of all forks, in runs", showgrid=False)
    figure.update_layout(margin_t=36, margin_b=110, legend={"y": -0.18, "yanchor": "top"})
    return figure


def _both_signs(percent: float) -> float:
    """A linear scale around zero that is logarithmic beyond."""
    size = abs(percent) / LINEAR_UP_TO
    return copysign(size if size <= 1 else 1 + log10(size), percent)


def forecasts_of_curves(
    curves: Sequence[Trace], forecasts: Sequence[Forecast], others: Sequence[np.ndarray], *, columns: int = 3
) -> Figure:
    """Each curve with its forecast and, below, what the forecast missed, where its band can be seen.

    Args:
        curves: the curves as they were observed.
        forecasts: forecasts of all but their first values.
        others: the same, of the Multi-Power Law.
        columns: curves side by side.
    """
    rows = -(-len(curves) // columns)
    figure = subplots(
        rows=2 * rows,
        cols=columns,
        row_heights=[1.5, 1] * rows,
        vertical_spacing=0.075,
        horizontal_spacing=0.06,
        subplot_titles=[name for row in range(rows) for name in _titles(curves, row, columns)],
    )
    for i, (curve, forecast, other) in enumerate(zip(curves, forecasts, others, strict=True)):
        above, column = 2 * (i // columns) + 1, i % columns + 1
        for trace in _curve_traces(curve, forecast, legend=i == 0):
            figure.add_trace(trace, row=above, col=column)
        for trace in _miss_traces(curve, forecast, other, legend=i == 0):
            figure.add_trace(trace, row=above + 1, col=column)
        figure.update_yaxes(range=[curve.values[1:].min() - 0.05, 3.75], row=above, col=column)
    set_layout(figure, "", height=430 * rows)
    figure.update_annotations(font_size=14)
    for row in range(1, 2 * rows, 2):
        figure.update_xaxes(showticklabels=False, row=row)
        figure.update_yaxes(title_text="loss", row=row, col=1)
        figure.update_yaxes(range=[-22, 22], row=row + 1)
        figure.update_yaxes(title_text="above the median<br>(thousandths)", row=row + 1, col=1)
    figure.update_xaxes(title_text="thousand steps", row=2 * rows)
    figure.update_layout(margin_t=36, margin_b=84, legend={"y": -0.08, "yanchor": "top"})
    return figure


def _titles(curves: Sequence[Trace], row: int, columns: int) -> list[str]:
    names = [curve.name for curve in curves[row * columns : (row + 1) * columns]]
    return [*names, *[""] * (2 * columns - len(names))]


def _curve_traces(curve: Trace, forecast: Forecast, *, legend: bool) -> list[Any]:
    steps = forecast.steps / 1000
    return [
        line(steps, curve.values[1:], "observed", "rgba(64,64,64,0.45)", 4, legend=legend),
        line(steps, forecast.median, "the law, median", BLUE, 1.5, legend=legend),
    ]


def _miss_traces(curve: Trace, forecast: Forecast, other: np.ndarray, *, legend: bool) -> list[Any]:
    steps, median = forecast.steps / 1000, forecast.median
    low, high = (1000 * (edge - median) for edge in forecast.band(0.9))
    return [
        band(steps, low, high, "the law, 90 % band", legend=legend),
        line(steps[[0, -1]], np.zeros(2), "", BLUE, 1.5, legend=False),
        line(steps, 1000 * (curve.values[1:] - median), "", "#404040", 1.2, legend=False),
        line(steps, 1000 * (other - median), "Multi-Power Law, fitted here", ORANGE, 1.2, legend=legend),
    ]


def line(x: np.ndarray, y: np.ndarray, name: str, colour: str, width: float, *, legend: bool = True) -> Any:
    """A line."""
    return graph_objects().Scatter(
        x=x, y=y, mode="lines", line={"color": colour, "width": width}, name=name, showlegend=legend
    )


def band(
    x: np.ndarray, low: np.ndarray, high: np.ndarray, name: str, *, colour: str = "0,114,178", legend: bool = True
) -> Any:
    """The area between two lines; the colour is red, green and blue."""
    return graph_objects().Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([low, high[::-1]]),
        mode="lines",
        line_width=0,
        fill="toself",
        fillcolor=f"rgba({colour},0.2)",
        name=name,
        hoverinfo="skip",
        showlegend=legend,
    )
