"""Figures of a study with plotly: provisional, only traces and costs are drawn."""

from collections.abc import Callable, Mapping

import plotly.graph_objects as go  # pyright: ignore[reportMissingTypeStubs]

from paceline.views.data import StudyView


def traces(view: StudyView) -> go.Figure | None:
    """Values of all forks over steps."""
    if not any(fork.steps for fork in view.forks):
        return None
    figure = go.Figure()
    for fork in view.forks:
        column = fork.values.get(view.of, next(iter(fork.values.values()), ()))
        mark = {"name": f"fork {fork.fork}", "mode": "lines+markers"}
        figure.add_trace(go.Scatter(x=list(fork.steps), y=list(column), **mark))  # pyright: ignore
    figure.update_layout(xaxis_title="step", yaxis_title=f"value ({view.of} weights)")  # pyright: ignore
    return figure


def _nothing(view: StudyView) -> go.Figure | None:
    return None


FIGURES: dict[str, Callable[[StudyView], go.Figure | None]] = {
    "traces": traces,
    **dict.fromkeys(("lineage", "forecasts", "surface", "failure", "embedding", "calibration"), _nothing),
}


def costs(views: Mapping[str, StudyView]) -> go.Figure:
    """Steps taken against the value reached, one point per study."""
    figure = go.Figure()
    for name, view in views.items():
        value = None if view.best is None else view.value(view.best)
        at = {"x": [view.done_steps / max(view.steps, 1)], "y": [value]}
        figure.add_trace(go.Scatter(**at, name=name, mode="markers"))  # pyright: ignore
    figure.update_layout(xaxis_title="cost, in runs", yaxis_title="best value")  # pyright: ignore
    return figure


def style(figure: go.Figure, dark: bool) -> go.Figure:
    """Light or dark."""
    clear = "rgba(0,0,0,0)"
    figure.update_layout(  # pyright: ignore
        template="plotly_dark" if dark else "plotly_white", paper_bgcolor=clear, plot_bgcolor=clear, margin_t=24
    )
    return figure
