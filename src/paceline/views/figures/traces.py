"""What every fork observed, and below it the rates, on one axis of steps."""

from collections.abc import Sequence
from typing import Any

from paceline.views.curves import Birth, Curve, best_curve, births, curves, latest, usual_values, whole_curve
from paceline.views.data import StudyView
from paceline.views.figures.axes import rate_axis, step_axis, step_buttons, value_axis, within
from paceline.views.figures.labels import label, weights_label
from paceline.views.figures.style import LIGHT, TASKS, Figure, framed, graph_objects, subplots

# name, colour, width and dash of the forks of a state; the winner is drawn over all of them
_STATES: dict[str, tuple[str, str, float, str]] = {
    "dropped": ("dropped", LIGHT.dropped, 1.1, "solid"),
    "ended": ("ran to the end", LIGHT.ended, 1.5, "solid"),
    "running": ("running", LIGHT.running, 1.5, "solid"),
    "failed": ("failed", LIGHT.failed, 1.4, "dash"),
}


def traces(view: StudyView) -> Figure | None:
    """Values above, rates below: forks by what became of them, clones where they began, the winner bold."""
    lines = curves(view)
    if not any(line.values for line in lines):
        return None
    figure = subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.64, 0.36], vertical_spacing=0.06)
    kept = [line for line in lines if line.state != "failed"] or list(lines)
    seen = [v for line in kept for v in line.values]
    axis = value_axis(usual_values(view) or seen, seen)
    (_draw_tasks if view.tasks else _draw_forks)(figure, view, lines)
    _add_crosses(figure, [line for line in lines if line.state == "failed"], axis)
    left_out = len(view.forks) - len(latest(view))
    title = "Runs and their rates" if view.tasks else "Forks and their rates"
    framed(figure, title, height=620, note=f"{left_out:,} earlier ones are left out" if left_out else "")
    figure.update_yaxes(axis, row=1)
    figure.update_yaxes(rate_axis(view, (rate for line in lines for rate in line.rates)), row=2)
    figure.update_yaxes(title_text=weights_label(view.of), row=1)
    figure.update_yaxes(title_text="learning rate", row=2)
    figure.update_xaxes({**step_axis(), "title_text": ""}, row=1)
    figure.update_xaxes(step_axis(), row=2)
    figure.update_layout(
        updatemenus=[step_buttons(("xaxis", "xaxis2"), (step for line in lines for step in line.steps))], margin_b=70
    )
    return figure


def _draw_forks(figure: Figure, view: StudyView, lines: Sequence[Curve]) -> None:
    for state, (name, colour, width, dash) in _STATES.items():
        of_state = [line for line in lines if line.state == state]
        if of_state:
            stroke = {"color": colour, "width": width, "dash": dash}
            _add(figure, of_state, f"{len(of_state)} {name}", stroke, hover="fork %{customdata}")
    _add_births(figure, births(view))
    best = best_curve(view)
    if best is not None:
        words = "won" if view.finished is not None else "leads"
        stroke = {"color": LIGHT.best, "width": 3}
        _add(figure, [best], f"fork {best.fork} {words}", stroke, hover="fork %{customdata}")


def _draw_tasks(figure: Figure, view: StudyView, lines: Sequence[Curve]) -> None:
    """Runs of a family: a colour a task, its best run bold."""
    best = [whole_curve(view, view.fork(run.fork)) for run in view.best_runs.values()]
    for i, task in enumerate(view.tasks):
        colour, name = TASKS[i % len(TASKS)], label(task)
        own, bold = ([line for line in group if line.task == task] for group in (lines, best))
        fine = [line for line in own if line.state != "failed" and line.fork not in {b.fork for b in bold}]
        thin, dash = {"color": colour, "width": 1}, {"color": colour, "width": 1, "dash": "dash"}
        hover = "%{fullData.name}, run %{customdata}"
        _add(figure, fine, name, thin, hover=hover, group=name, legend=not bold)
        _add(
            figure, [line for line in own if line.state == "failed"], name, dash, hover=hover, group=name, legend=False
        )
        _add(figure, bold, name, {"color": colour, "width": 3}, hover=hover, group=name)


def _add(
    figure: Figure,
    lines: Sequence[Curve],
    name: str,
    stroke: dict[str, Any],
    *,
    hover: str,
    group: str = "",
    legend: bool = True,
) -> None:
    """Lines of one look as one trace in each panel, with a gap after each: a study may have thousands."""
    if not lines:
        return
    go, look = graph_objects(), {"mode": "lines", "line": stroke, "legendgroup": group or name, "name": name}
    values = _gapped([(line.fork, line.steps, line.values) for line in lines])
    rates = _gapped([(line.fork, line.rate_steps, line.rates) for line in lines])
    template = hover + ", step %{x:,}: %{y:.4g}<extra></extra>"
    figure.add_trace(go.Scatter(**values, **look, showlegend=legend, hovertemplate=template), row=1, col=1)
    figure.add_trace(go.Scatter(**rates, **look, showlegend=False, hovertemplate=template), row=2, col=1)


def _gapped(lines: Sequence[tuple[int, Sequence[float], Sequence[float]]]) -> dict[str, list[Any]]:
    x, y, forks = list[Any](), list[Any](), list[Any]()
    for fork, steps, values in lines:
        x += [*steps, None]
        y += [*values, None]
        forks += [fork] * (len(steps) + 1)
    return {"x": x[:-1], "y": y[:-1], "customdata": forks[:-1]}


def _add_crosses(figure: Figure, failed: Sequence[Curve], axis: dict[str, Any]) -> None:
    """Where forks failed, or left the figure."""
    ends = [line for line in failed if line.values]
    if ends:
        at = {"x": [line.steps[-1] for line in ends], "y": within((line.values[-1] for line in ends), axis)}
        mark = {"symbol": "x", "size": 8, "color": LIGHT.failed}
        told = {"customdata": [line.fork for line in ends], "hovertemplate": "fork %{customdata} failed<extra></extra>"}
        crosses = graph_objects().Scatter(**at, mode="markers", marker=mark, showlegend=False, cliponaxis=False, **told)
        figure.add_trace(crosses, row=1, col=1)


def _add_births(figure: Figure, found: Sequence[Birth]) -> None:
    """Where clones began, on their parents' lines and at their own rates."""
    if not found:
        return
    told = {
        "customdata": [[birth.fork, birth.parent] for birth in found],
        "hovertemplate": "fork %{customdata[0]}, a clone of fork %{customdata[1]}, step %{x:,}<extra></extra>",
    }
    mark = {"symbol": "circle", "size": 6, "color": LIGHT.halo, "line": {"color": LIGHT.clone, "width": 1.4}}
    look = {"mode": "markers", "marker": mark, "name": "clone begins", "legendgroup": "clones", **told}
    steps, go = [birth.step for birth in found], graph_objects()
    figure.add_trace(go.Scatter(x=steps, y=[birth.value for birth in found], **look), row=1, col=1)
    figure.add_trace(go.Scatter(x=steps, y=[birth.rate for birth in found], showlegend=False, **look), row=2, col=1)
