"""Cost against value of several studies."""

from collections.abc import Mapping
from typing import Any

from paceline.views.cost_curves import CostCurve, cost_curves
from paceline.views.data import StudyView
from paceline.views.figures.axes import value_axis
from paceline.views.figures.labels import label
from paceline.views.figures.style import MARKERS, SERIES_COLOURS, Figure, graph_objects, set_layout

EARLY_SHARE = 0.1  # of its cost: values before that do not set the range of the axis


def costs(views: Mapping[str, StudyView]) -> Figure:
    """The final value of each study against its cost, and the best value so far on the way there."""
    curves = cost_curves(views)
    figure = graph_objects().Figure()
    for i, curve in enumerate(curves):
        colour, turn = SERIES_COLOURS[i % len(SERIES_COLOURS)], i // len(SERIES_COLOURS)
        for trace in _traces(curve, colour, MARKERS[turn % len(MARKERS)], "dot" if turn % 2 else "solid"):
            figure.add_trace(trace)
    set_layout(figure, "Cost against value", height=430 + 22 * len(curves))
    figure.update_xaxes(title_text="cost: steps of all forks, in runs", rangemode="tozero")
    final = [curve.value for curve in curves if curve.value is not None]
    late = [value for curve in curves for cost, value in curve.points if cost >= EARLY_SHARE * curve.cost]
    figure.update_yaxes(title_text="value", **value_axis([*final, *late]))
    figure.update_layout(legend={"y": 0, "yref": "container", "yanchor": "bottom"}, margin_t=56, margin_b=64)
    return figure


def _traces(curve: CostCurve, colour: str, marker: str, dash: str) -> list[Any]:
    """The line of a study, and a mark at its value, which is open while the study runs."""
    scatter, name = graph_objects().Scatter, label(curve.name)
    series: dict[str, Any] = {"name": name, "legendgroup": name}
    hover = "%{fullData.name}: %{x:.3g} runs, %{y:.4g}"
    points = [*curve.points, *([(curve.cost, curve.points[-1][1])] if curve.points else [])]
    line = scatter(
        x=[cost for cost, _ in points],
        y=[value for _, value in points],
        mode="lines",
        line={"color": colour, "width": 1.3, "dash": dash, "shape": "hv"},
        hovertemplate=f"{hover}<extra></extra>",
        showlegend=curve.value is None,
        **series,
    )
    if curve.value is None:
        return [line]
    end = scatter(
        x=[curve.cost],
        y=[curve.value],
        customdata=[label(curve.weights)],
        mode="markers",
        marker={"color": colour, "size": 12, "symbol": marker if curve.finished else f"{marker}-open"},
        hovertemplate=f"{hover} (%{{customdata}} weights)<extra></extra>",
        cliponaxis=False,
        **series,
    )
    return [line, end]
