"""The latent functions of the model over values and rates, decision by decision."""

from collections.abc import Sequence
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import choice, decades, value_axis
from paceline.views.figures.style import LIGHT, SCALE, Figure, framed, graph_objects, subplots
from paceline.views.grids import Chosen, Grid, Surface, surfaces

SHOWN = 40  # decisions that a slider can be set to
_NAMES = ("how far an interval moves (f1)", "how soon (f2)", "f3")


def surface(view: StudyView) -> Figure | None:
    """Mean and deviation of each latent function, with the rates that the decision then gave out."""
    found = surfaces(view)[-SHOWN:]
    if not found:
        return None
    latents = max(len(one.latents) for one in found)
    titles = [f"{name}: {what}" for name in _NAMES[:latents] for what in ("mean", "deviation")]
    figure = subplots(
        rows=2 * latents, cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.2 / (2 * latents)
    )
    each = 0
    for k, one in enumerate(found):
        drawn = _drawn(one, latents)
        each = len(drawn)
        for trace, row in drawn:
            trace.visible = k == len(found) - 1
            figure.add_trace(trace, row=row, col=1)
    finish(
        figure, found, each, rows=2 * latents, title="The model over values and rates", height=140 + 250 * 2 * latents
    )
    return figure


def _drawn(one: Surface, latents: int) -> list[tuple[Any, int]]:
    """Traces of a decision, with the row of each: as many for every decision."""
    found = list[tuple[Any, int]]()
    for i in range(latents):
        latent = one.latents[min(i, len(one.latents) - 1)]
        for j, grid in enumerate((latent.mean, latent.deviation)):
            row = 2 * i + j + 1
            bar = {"len": 0.9 / (2 * latents), "y": 1 - (row - 0.5) / (2 * latents)}
            found += [(heat(one, grid, bar), row), (marks(one.chosen, legend=row == 1), row)]
    return found


def heat(one: Surface, grid: Grid, bar: dict[str, Any], **settings: Any) -> Any:
    """A grid as colours."""
    return graph_objects().Heatmap(
        x=list(one.rates),
        y=list(one.values),
        z=[list(row) for row in grid],
        colorscale=SCALE,
        colorbar={"thickness": 12, "outlinewidth": 0, **bar},
        hovertemplate="rate %{x:.3g}, value %{y:.4g}: %{z:.4g}<extra></extra>",
        **settings,
    )


def marks(chosen: Sequence[Chosen], *, legend: bool) -> Any:
    """The rates that were given out, at the values they were given for."""
    return graph_objects().Scatter(
        x=[one.rate for one in chosen],
        y=[one.value for one in chosen],
        mode="markers",
        name="rates given to forks",
        marker={"symbol": "circle", "size": 8, "color": LIGHT.failed, "line": {"color": LIGHT.halo, "width": 1.5}},
        customdata=[one.fork for one in chosen],
        hovertemplate="fork %{customdata} at rate %{x:.3g}, from %{y:.4g}<extra></extra>",
        showlegend=legend,
        cliponaxis=False,
    )


def finish(figure: Figure, found: Sequence[Surface], each: int, *, rows: int, title: str, height: int) -> None:
    """Axes, and a slider over the decisions."""
    framed(figure, title, height=height)
    figure.update_annotations(font_size=13)
    figure.update_layout(
        margin_t=88, legend={"y": 1, "yref": "container", "yanchor": "top", "xanchor": "right", "x": 1}
    )
    shown = [[i == k for i in range(len(found)) for _ in range(each)] for k in range(len(found))]
    labels = [f"{one.round}, at step {one.step:,}" for one in found]
    begun, grids = [c.value for one in found for c in one.chosen], [v for one in found for v in one.values]
    rates = [rate for one in found for rate in one.rates]
    figure.update_xaxes(type="log", **decades(min(rates), max(rates), room=2), showgrid=False, tickangle=0)
    figure.update_xaxes(title_text="learning rate, or multiplier of the base", row=rows)
    figure.update_yaxes(title_text="value", **value_axis(begun or grids, grids), showgrid=False)
    if len(found) > 1:
        slider = choice(labels, shown, prefix="decision: ", active=len(found) - 1)
        figure.update_layout(sliders=[slider], margin_b=124)
