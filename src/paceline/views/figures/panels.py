"""A panel of values above a panel of learning rates, on one axis of steps."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from paceline.views.curves import Curve
from paceline.views.figures.style import Figure, graph_objects, subplots
from paceline.views.plan import RunLine

StepLine = Curve | RunLine
"""The values and the rates of a run, each with their steps."""


class LineStyle(NamedTuple):
    """How a line looks, and its name in the legend."""

    name: str
    colour: str
    width: float
    dash: str = "solid"


def value_and_rate_panels() -> Figure:
    """An empty figure with the two panels."""
    return subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.64, 0.36], vertical_spacing=0.06)


def add_lines(
    figure: Figure,
    lines: Sequence[StepLine],
    look: LineStyle,
    *,
    keys: Sequence[Any],
    hover: str,
    group: str = "",
    legend: bool = True,
) -> None:
    """Add lines that look the same as one trace in each panel, with gaps between them: there may be thousands.

    Args:
        figure: a figure with both panels.
        lines: nothing is added if there are none.
        look: how they look, and their name in the legend.
        keys: what `%{customdata}` is on each line.
        hover: the first part of the text under the pointer.
        group: entries of the legend with the same group are switched together.
        legend: whether the legend has an entry for these lines.
    """
    if not lines:
        return
    settings: dict[str, Any] = {
        "name": look.name,
        "mode": "lines",
        "line": {"color": look.colour, "width": look.width, "dash": look.dash},
        "legendgroup": group or look.name,
        "hovertemplate": f"{hover}, step %{{x:,}}: %{{y:.4g}}<extra></extra>",
    }
    values = _with_gaps((key, line.steps, line.values) for key, line in zip(keys, lines, strict=True))
    rates = _with_gaps((key, line.rate_steps, line.rates) for key, line in zip(keys, lines, strict=True))
    scatter = graph_objects().Scatter
    figure.add_trace(scatter(**values, **settings, showlegend=legend), row=1, col=1)
    figure.add_trace(scatter(**rates, **settings, showlegend=False), row=2, col=1)


def _with_gaps(lines: Iterable[tuple[Any, Sequence[float], Sequence[float]]]) -> dict[str, list[Any]]:
    x, y, keys = list[Any](), list[Any](), list[Any]()
    for key, steps, values in lines:
        x += [*steps, None]
        y += [*values, None]
        keys += [key] * (len(steps) + 1)
    return {"x": x[:-1], "y": y[:-1], "customdata": keys[:-1]}
