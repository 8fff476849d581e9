"""The learning rate of a schedule at every step, on a log scale."""

from math import log10

from paceline.traces import Schedule
from paceline.views.curves import rate_line
from paceline.views.figures.axes import log_ticks, step_axis
from paceline.views.figures.style import LIGHT, Figure, graph_objects, recolour, set_layout

LOWEST_SHARE = 1e-4  # of the highest rate: a rate that decays to zero leaves the figure here


def schedule_figure(schedule: Schedule, *, dark: bool = False) -> Figure:
    """The rate over the steps of a run."""
    steps, rates = rate_line(schedule, 0, schedule.steps)
    high = max(rates)
    low = max(min(rates), LOWEST_SHARE * high)
    line = graph_objects().Scatter(
        x=steps,
        y=rates,
        mode="lines",
        line={"color": LIGHT.best, "width": 2.5},
        hovertemplate="step %{x:,}: %{y:.4g}<extra></extra>",
    )
    figure = set_layout(graph_objects().Figure([line]), "Learning rate", height=340)
    figure.update_layout(margin_t=56)
    figure.update_xaxes(step_axis())
    ticks = log_ticks(low * 0.8, high * 1.25)
    figure.update_yaxes(type="log", title_text="learning rate", range=[log10(low) - 0.1, log10(high) + 0.1], **ticks)
    return recolour(figure, dark=dark)
