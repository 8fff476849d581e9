"""The latent functions of the model over values and rates, decision by decision."""

from collections.abc import Sequence
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import log_ticks, value_axis
from paceline.views.figures.controls import MAX_DECISIONS, decision_slider
from paceline.views.figures.style import COLOUR_SCALE, LIGHT, Figure, graph_objects, set_layout, subplots
from paceline.views.grids import Grid, RateChoice, Surface, surfaces

_NAMES = ("size of the change in an interval (f1)", "its speed (f2)", "f3", "f4")


def surface(view: StudyView) -> Figure | None:
    """Mean and standard deviation of each latent function, with the rates that the decision gave to forks."""
    data = surfaces(view)[-MAX_DECISIONS:]
    if not data:
        return None
    latents = max(len(one.latents) for one in data)
    rows = 2 * latents
    titles = [f"{name}: {quantity}" for name in _NAMES[:latents] for quantity in ("mean", "deviation")]
    figure = subplots(rows=rows, cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.2 / rows)
    traces_each = 0
    for k, one in enumerate(data):
        traces = _traces(one, latents)
        traces_each = len(traces)
        for trace, row in traces:
            trace.visible = k == len(data) - 1
            figure.add_trace(trace, row=row, col=1)
    title, height = "The model over values and rates", 140 + 250 * rows
    set_surface_layout(figure, data, traces_each, rows=rows, title=title, height=height)
    return figure


def _traces(one: Surface, latents: int) -> list[tuple[Any, int]]:
    """The traces of a decision, as many for each decision, with the row of each."""
    traces, rows = list[tuple[Any, int]](), 2 * latents
    for i in range(latents):
        latent = one.latents[min(i, len(one.latents) - 1)]
        for j, grid in enumerate((latent.mean, latent.deviation)):
            row = 2 * i + j + 1
            colour_bar = {"len": 0.9 / rows, "y": 1 - (row - 0.5) / rows}
            traces += [(heatmap(one, grid, colour_bar), row), (choice_markers(one.choices, legend=row == 1), row)]
    return traces


def heatmap(one: Surface, grid: Grid, colour_bar: dict[str, Any], **settings: Any) -> Any:
    """A grid as colours."""
    return graph_objects().Heatmap(
        x=list(one.rates),
        y=list(one.values),
        z=[list(row) for row in grid],
        colorscale=COLOUR_SCALE,
        colorbar={"thickness": 12, "outlinewidth": 0, **colour_bar},
        hovertemplate="rate %{x:.3g}, value %{y:.4g}: %{z:.4g}<extra></extra>",
        **settings,
    )


def choice_markers(choices: Sequence[RateChoice], *, legend: bool) -> Any:
    """The rates that a decision gave to forks, at the values of these forks."""
    return graph_objects().Scatter(
        x=[choice.rate for choice in choices],
        y=[choice.value for choice in choices],
        mode="markers",
        name="rates given to forks",
        marker={"symbol": "circle", "size": 8, "color": LIGHT.failed, "line": {"color": LIGHT.halo, "width": 1.5}},
        customdata=[choice.fork for choice in choices],
        hovertemplate="fork %{customdata} at rate %{x:.3g}, from %{y:.4g}<extra></extra>",
        showlegend=legend,
        cliponaxis=False,
    )


def set_surface_layout(
    figure: Figure, data: Sequence[Surface], traces_each: int, *, rows: int, title: str, height: int
) -> None:
    """Give a figure of surfaces its axes and a slider over decisions.

    Args:
        figure: the figure, with the traces of all decisions.
        data: the surface of each decision.
        traces_each: how many traces each decision has.
        rows: panels of the figure.
        title: its title.
        height: its height in pixels.
    """
    set_layout(figure, title, height=height)
    figure.update_annotations(font_size=13)
    figure.update_layout(
        margin_t=88, legend={"y": 1, "yref": "container", "yanchor": "top", "xanchor": "right", "x": 1}
    )
    chosen_values = [choice.value for one in data for choice in one.choices]
    grid_values = [value for one in data for value in one.values]
    rates = [rate for one in data for rate in one.rates]
    figure.update_xaxes(type="log", **log_ticks(min(rates), max(rates), crowding=2), showgrid=False, tickangle=0)
    figure.update_xaxes(title_text="learning rate, or multiplier of the base", row=rows)
    figure.update_yaxes(title_text="value", **value_axis(chosen_values or grid_values, grid_values), showgrid=False)
    if len(data) > 1:
        labels = [f"{one.round}, at step {one.step:,}" for one in data]
        visible = [[i == k for i in range(len(data)) for _ in range(traces_each)] for k in range(len(data))]
        figure.update_layout(sliders=[decision_slider(labels, visible, active=len(data) - 1)], margin_b=124)
