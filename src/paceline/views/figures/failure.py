"""How likely an interval is to fail, over values and rates, or over rates decision by decision in older journals."""

from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import decades
from paceline.views.figures.style import LIGHT, SCALE, Figure, framed, graph_objects, subplots
from paceline.views.figures.surface import SHOWN, finish, heat, marks
from paceline.views.grids import FailureLine, failure_lines, surfaces


def failure(view: StudyView) -> Figure | None:
    """P(fail) over the grid of each decision that has one; else at the value each decision was made at."""
    found = [one for one in surfaces(view) if one.p_fail is not None][-SHOWN:]
    if not found:
        lines = failure_lines(view)
        return _by_decision(lines) if lines else None
    figure = subplots(rows=1, cols=1)
    for k, one in enumerate(found):
        assert one.p_fail is not None
        bar: dict[str, Any] = {"title": {"text": "P(fail)", "side": "right"}}
        for trace in (heat(one, one.p_fail, bar, zmin=0, zmax=1), marks(one.chosen, legend=True)):
            trace.visible = k == len(found) - 1
            figure.add_trace(trace)
    finish(figure, found, 2, rows=1, title="Probability that an interval fails", height=460)
    return figure


def _by_decision(lines: tuple[FailureLine, ...]) -> Figure:
    """Rates that all decisions asked about against decisions: each also asks about its parent's own rate."""
    go = graph_objects()
    columns = [f"{line.step:,}" for line in lines]
    shared = sorted(set(lines[0].rates).intersection(*(line.rates for line in lines)))
    asked = [dict(zip(line.rates, line.probability, strict=True)) for line in lines]
    shades = go.Heatmap(
        x=list(range(len(lines))),
        y=shared,
        z=[[of_rate[rate] for of_rate in asked] for rate in shared],
        zmin=0,
        zmax=1,
        customdata=[[line.round for line in lines] for _ in shared],
        hovertemplate="decision %{customdata}, rate %{y:.3g}: %{z:.3f}<extra></extra>",
        **_scale(),
    )
    given = [(i, one) for i, line in enumerate(lines) for one in line.chosen]
    dots = go.Scatter(
        x=[i for i, _ in given],
        y=[one.rate for _, one in given],
        mode="markers",
        name="rates given to forks",
        marker={"symbol": "circle", "size": 7, "color": LIGHT.failed, "line": {"color": LIGHT.halo, "width": 1.2}},
        customdata=[one.fork for _, one in given],
        hovertemplate="fork %{customdata} at rate %{y:.3g}<extra></extra>",
        showlegend=True,
    )
    figure = framed(go.Figure([shades, dots]), "Probability that an interval fails", height=460)
    rates = [rate for line in lines for rate in line.rates]
    every = max(1, len(columns) // 4)
    figure.update_xaxes(
        title_text="step of each decision (evenly spaced)",
        tickvals=list(range(0, len(columns), every)),
        ticktext=columns[::every],
        tickangle=0,
        showgrid=False,
    )
    figure.update_yaxes(title_text="learning rate", type="log", **decades(min(rates), max(rates)), showgrid=False)
    return figure


def _scale() -> dict[str, Any]:
    return {"colorscale": SCALE, "colorbar": {"title": {"text": "P(fail)", "side": "right"}, "thickness": 12}}
