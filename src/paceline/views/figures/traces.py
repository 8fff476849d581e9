"""The values of every fork and, on the same axis of steps, their learning rates."""

from collections.abc import Sequence
from typing import Any

from paceline.study import BestState
from paceline.views.curves import (
    CloneStart,
    Curve,
    best_curve,
    best_values,
    clone_starts,
    curves,
    shown_forks,
    whole_curve,
)
from paceline.views.data import StudyView
from paceline.views.figures.axes import clip_to_axis, rate_axis, step_axis, value_axis
from paceline.views.figures.controls import scale_buttons
from paceline.views.figures.labels import label, weights_label
from paceline.views.figures.panels import LineStyle, add_lines, value_and_rate_panels
from paceline.views.figures.style import LIGHT, SERIES_COLOURS, Figure, graph_objects, set_layout

_LINES = {
    "dropped": LineStyle("dropped", LIGHT.dropped, 1.1),
    "ended": LineStyle("ran to the end", LIGHT.ended, 1.5),
    "running": LineStyle("running", LIGHT.running, 1.5),
    "turned": LineStyle("turned for the worse", LIGHT.ended, 1.4, "dot"),
    "failed": LineStyle("failed", LIGHT.failed, 1.4, "dash"),
}
"""Lines of forks by their state. The best fork is drawn above them all."""
_BEST_WIDTH = 3


def traces(view: StudyView) -> Figure | None:
    """Values above and rates below: forks by their state, the starts of clones, and the best run in bold."""
    lines = curves(view)
    if not any(line.values for line in lines):
        return None
    figure = value_and_rate_panels()
    failed = [line for line in lines if line.state == "failed"]
    values = [value for line in lines if line.state != "failed" or len(failed) == len(lines) for value in line.values]
    axis = value_axis(best_values(view) or values, values)
    (_add_tasks if view.tasks else _add_forks)(figure, view, lines)
    _add_crosses(figure, failed, axis)
    omitted = len(view.forks) - len(shown_forks(view))
    title = "Runs and their rates" if view.tasks else "Forks and their rates"
    set_layout(figure, title, height=620, note=f"{omitted:,} earlier ones are omitted" if omitted else "")
    figure.update_yaxes(axis, row=1)
    figure.update_yaxes(rate_axis(view, (rate for line in lines for rate in line.rates)), row=2)
    figure.update_yaxes(title_text=weights_label(view.weights), row=1)
    figure.update_yaxes(title_text="learning rate", row=2)
    figure.update_xaxes({**step_axis(), "title_text": ""}, row=1)
    figure.update_xaxes(step_axis(), row=2)
    buttons = scale_buttons(("xaxis", "xaxis2"), (step for line in lines for step in line.steps))
    figure.update_layout(updatemenus=[buttons], margin_b=70)
    return figure


def _add_forks(figure: Figure, view: StudyView, lines: Sequence[Curve]) -> None:
    hover = "fork %{customdata}"
    for state, line in _LINES.items():
        forks = [curve for curve in lines if curve.state == state]
        _add_curves(figure, forks, line._replace(name=f"{len(forks)} {line.name}"), hover=hover)
    _add_clone_starts(figure, clone_starts(view))
    best = best_curve(view)
    if best is not None:
        name = f"fork {best.fork} {'leads' if view.finished is None else 'won'}"
        _add_curves(figure, [best], LineStyle(name, LIGHT.best, _BEST_WIDTH), hover=hover)
    if view.kept is not None:
        _add_best_moment(figure, view.kept)


def _add_best_moment(figure: Figure, kept: BestState) -> None:
    """A star at the moment whose weights the study returns."""
    star = graph_objects().Scatter(
        x=[kept.step],
        y=[kept.value],
        mode="markers",
        marker={"symbol": "star", "size": 13, "color": LIGHT.best, "line": {"color": LIGHT.halo, "width": 1.2}},
        name=f"best moment, {kept.weights} weights",
        hovertemplate=f"fork {kept.fork}, step %{{x:,}}: %{{y:.5g}}<extra>best moment</extra>",
        cliponaxis=False,
    )
    figure.add_trace(star, row=1, col=1)


def _add_tasks(figure: Figure, view: StudyView, lines: Sequence[Curve]) -> None:
    """The runs of a family: a colour for each task, its best run in bold, failed runs dashed."""
    best = {run.fork: whole_curve(view, view.fork(run.fork)) for run in view.best_runs.values()}
    hover = "%{fullData.name}, run %{customdata}"
    for i, task in enumerate(view.tasks):
        thin = LineStyle(label(task), SERIES_COLOURS[i % len(SERIES_COLOURS)], 1)
        runs = [line for line in lines if line.task == task]
        failed = [line for line in runs if line.state == "failed"]
        others = [line for line in runs if line.state != "failed" and line.fork not in best]
        bold = [line for line in best.values() if line.task == task]
        _add_curves(figure, others, thin, hover=hover, group=f"task {i}", legend=not bold)
        _add_curves(figure, failed, thin._replace(dash="dash"), hover=hover, group=f"task {i}", legend=False)
        _add_curves(figure, bold, thin._replace(width=_BEST_WIDTH), hover=hover, group=f"task {i}")


def _add_curves(
    figure: Figure, lines: Sequence[Curve], look: LineStyle, *, hover: str, group: str = "", legend: bool = True
) -> None:
    keys = [line.fork for line in lines]
    add_lines(figure, lines, look, keys=keys, hover=hover, group=group, legend=legend)


def _add_crosses(figure: Figure, failed: Sequence[Curve], axis: dict[str, Any]) -> None:
    """A cross at the last value of each failed fork, or at the edge of the figure."""
    ends = [line for line in failed if line.values]
    if not ends:
        return
    crosses = graph_objects().Scatter(
        x=[line.steps[-1] for line in ends],
        y=clip_to_axis((line.values[-1] for line in ends), axis),
        mode="markers",
        marker={"symbol": "x", "size": 8, "color": LIGHT.failed},
        customdata=[line.fork for line in ends],
        hovertemplate="fork %{customdata} failed<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )
    figure.add_trace(crosses, row=1, col=1)


def _add_clone_starts(figure: Figure, starts: Sequence[CloneStart]) -> None:
    """A circle at the start of each clone: above on the line of its parent, below at its own rate."""
    if not starts:
        return
    settings: dict[str, Any] = {
        "x": [start.step for start in starts],
        "mode": "markers",
        "marker": {"symbol": "circle", "size": 6, "color": LIGHT.halo, "line": {"color": LIGHT.clone, "width": 1.4}},
        "name": "clone begins",
        "legendgroup": "clones",
        "customdata": [[start.fork, start.parent] for start in starts],
        "hovertemplate": "fork %{customdata[0]}, a clone of fork %{customdata[1]}, step %{x:,}<extra></extra>",
    }
    scatter = graph_objects().Scatter
    figure.add_trace(scatter(y=[start.value for start in starts], **settings), row=1, col=1)
    figure.add_trace(scatter(y=[start.rate for start in starts], showlegend=False, **settings), row=2, col=1)
