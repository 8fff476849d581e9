"""A schedule by itself: the rate at every step, on a log scale."""

from math import log10

from paceline.traces import Schedule
from paceline.views.curves import rate_line
from paceline.views.figures.axes import decades, step_axis
from paceline.views.figures.style import LIGHT, Figure, framed, graph_objects, style

DEEPEST = 1e-4  # of the highest rate: what decays to zero leaves the figure below


def draw_schedule(schedule: Schedule, *, dark: bool = False) -> Figure:
    """The rate over the steps of a run."""
    steps, rates = rate_line(schedule, 0, schedule.steps)
    high = max(rates)
    low = max(min(rates), DEEPEST * high)
    line = graph_objects().Scatter(
        x=steps,
        y=rates,
        mode="lines",
        line={"color": LIGHT.best, "width": 2.5},
        hovertemplate="step %{x:,}: %{y:.4g}<extra></extra>",
    )
    figure = framed(graph_objects().Figure([line]), "Learning rate", height=340)
    figure.update_layout(margin_t=56)
    figure.update_xaxes(step_axis())
    span = {"range": [log10(low) - 0.1, log10(high) + 0.1], **decades(low * 0.8, high * 1.25)}
    figure.update_yaxes(type="log", title_text="learning rate", **span)
    return style(figure, dark)
