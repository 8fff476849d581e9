"""The probability that an interval fails, over values and rates; in older journals over rates and decisions."""

from collections.abc import Sequence
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import DECISION_LABELS, log_ticks
from paceline.views.figures.controls import MAX_DECISIONS
from paceline.views.figures.style import COLOUR_SCALE, LIGHT, Figure, graph_objects, set_layout, subplots
from paceline.views.figures.surface import choice_markers, heatmap, set_surface_layout
from paceline.views.grids import FailureLine, failure_lines, surfaces

TITLE, HEIGHT = "Probability that an interval fails", 460
COLOUR_BAR = {"title": {"text": "P(fail)", "side": "right"}}


def failure(view: StudyView) -> Figure | None:
    """P(fail) over the grid of each decision that has one; otherwise over the rates of each decision."""
    data = [one for one in surfaces(view) if one.p_fail is not None][-MAX_DECISIONS:]
    if not data:
        lines = failure_lines(view)
        return _by_decision(lines) if lines else None
    figure = subplots(rows=1, cols=1)
    for k, one in enumerate(data):
        assert one.p_fail is not None
        for trace in (
            heatmap(one, one.p_fail, COLOUR_BAR, zmin=0, zmax=1),
            choice_markers(one.choices, legend=True),
        ):
            trace.visible = k == len(data) - 1
            figure.add_trace(trace)
    set_surface_layout(figure, data, 2, rows=1, title=TITLE, height=HEIGHT)
    return figure


def _by_decision(lines: Sequence[FailureLine]) -> Figure:
    """A column for each decision. A row for each rate that all decisions share: each has its parent's rate besides."""
    figure = set_layout(graph_objects().Figure([_heatmap(lines), _choices(lines)]), TITLE, height=HEIGHT)
    steps = [f"{line.step:,}" for line in lines]
    every = max(1, len(steps) // DECISION_LABELS)
    figure.update_xaxes(
        title_text="step of each decision (evenly spaced)",
        tickvals=list(range(0, len(steps), every)),
        ticktext=steps[::every],
        tickangle=0,
        showgrid=False,
    )
    rates = [rate for line in lines for rate in line.rates]
    figure.update_yaxes(title_text="learning rate", type="log", **log_ticks(min(rates), max(rates)), showgrid=False)
    return figure


def _heatmap(lines: Sequence[FailureLine]) -> Any:
    rates = sorted(set(lines[0].rates).intersection(*(line.rates for line in lines)))
    probabilities = [dict(zip(line.rates, line.probabilities, strict=True)) for line in lines]
    return graph_objects().Heatmap(
        x=list(range(len(lines))),
        y=rates,
        z=[[by_rate[rate] for by_rate in probabilities] for rate in rates],
        zmin=0,
        zmax=1,
        customdata=[[line.round for line in lines] for _ in rates],
        hovertemplate="decision %{customdata}, rate %{y:.3g}: %{z:.3f}<extra></extra>",
        colorscale=COLOUR_SCALE,
        colorbar={**COLOUR_BAR, "thickness": 12},
    )


def _choices(lines: Sequence[FailureLine]) -> Any:
    choices = [(i, choice) for i, line in enumerate(lines) for choice in line.choices]
    return graph_objects().Scatter(
        x=[i for i, _ in choices],
        y=[choice.rate for _, choice in choices],
        mode="markers",
        name="rates given to forks",
        marker={"symbol": "circle", "size": 7, "color": LIGHT.failed, "line": {"color": LIGHT.halo, "width": 1.2}},
        customdata=[choice.fork for _, choice in choices],
        hovertemplate="fork %{customdata} at rate %{y:.3g}<extra></extra>",
        showlegend=True,
    )
