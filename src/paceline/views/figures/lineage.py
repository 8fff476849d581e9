"""Which fork was cloned from which, and at which rates they ran."""

from collections.abc import Sequence
from importlib import import_module
from math import log10
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import DECISION_LABELS, log_ticks
from paceline.views.figures.labels import label
from paceline.views.figures.style import COLOUR_SCALE, LIGHT, Figure, graph_objects, set_layout
from paceline.views.lineage import Bar, Lineage
from paceline.views.lineage import lineage as lineage_data

ON_DARK, ON_LIGHT = "#fffffe", "#101010"  # text on the two ends of the colour scale, on light and dark pages alike
MIN_ROWS, ROW_HEIGHT, MAX_HEIGHT = 4, 30, 900


def lineage(view: StudyView) -> Figure | None:
    """Bars for the intervals of forks, coloured by their rate, and lines to clones; the path to the best is framed."""
    data = lineage_data(view)
    if data is None:
        return None
    noun = "run" if view.tasks else "fork"
    has_base = any(fork.schedule.tuned_base is not None for fork in view.forks)
    rate_name = ("multiplier" if view.tasks else "peak rate") if has_base else "rate"
    branches = [_branches(data, on_best_path=best) for best in (False, True)]
    figure = graph_objects().Figure([_bars(data.bars, noun, rate_name), _colour_bar(data.bars, rate_name), *branches])
    if any(bar.state == "failed" for bar in data.bars):
        figure.add_trace(_crosses(data.bars))
    note = f"{data.omitted_forks:,} earlier ones are omitted" if data.omitted_forks else ""
    title = "Runs and their schedules" if view.tasks else "Lineage of forks"
    height = min(190 + ROW_HEIGHT * max(len(data.row_names), MIN_ROWS), MAX_HEIGHT)
    set_layout(figure, title, height=height, note=note)
    _set_axes(figure, data, "step" if view.tasks else "step of each decision (evenly spaced)")
    figure.update_layout(uniformtext={"mode": "hide", "minsize": 9}, bargap=0.25, legend_y=1.02)
    return figure


def _set_axes(figure: Figure, data: Lineage, title: str) -> None:
    first, rows = min(bar.first for bar in data.bars), len(data.row_names)
    labelled = range(first, len(data.borders), max(1, (len(data.borders) - first) // DECISION_LABELS))
    figure.update_xaxes(
        title_text=title,
        tickvals=list(labelled),
        ticktext=[f"{data.borders[i]:,}" for i in labelled],
        range=[first - 0.05, len(data.borders) - 0.95],
        showgrid=True,
        tickangle=0,
    )
    figure.update_yaxes(
        tickvals=list(range(rows)),
        ticktext=[label(name) for name in data.row_names],
        range=[rows - 0.4, -0.6],
        showgrid=False,
        ticks="",
    )


def _bars(bars: Sequence[Bar], noun: str, rate_name: str) -> Any:
    logs, (low, high) = [log10(bar.multiplier) for bar in bars], _log_range(bars)
    shares = [(log - low) / (high - low) for log in logs]
    colours: list[str] = import_module("plotly.colors").sample_colorscale(COLOUR_SCALE, shares)
    return graph_objects().Bar(
        orientation="h",
        base=[bar.first for bar in bars],
        x=[bar.last - bar.first for bar in bars],
        y=[bar.row for bar in bars],
        text=[str(bar.fork) for bar in bars],
        textposition="inside",
        insidetextanchor="start",
        insidetextfont={"color": _text_colours(bars)},
        textangle=0,
        hovertext=[_hover_text(bar, noun, rate_name) for bar in bars],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=[bar.multiplier for bar in bars],
        marker={
            "color": colours,
            "line": {
                "color": [LIGHT.failed if bar.on_best_path else LIGHT.paper for bar in bars],
                "width": [2.5 if bar.on_best_path else 1 for bar in bars],
            },
        },
        showlegend=False,
    )


def _colour_bar(bars: Sequence[Bar], rate_name: str) -> Any:
    """The scale of the rates beside the figure. It belongs to a point that is not drawn: bars have fixed colours."""
    low, high = _log_range(bars)
    ticks = log_ticks(10**low * 0.99, 10**high * 1.01)
    colour_bar = {
        "title": {"text": rate_name, "side": "right"},
        "tickvals": [log10(tick) for tick in ticks["tickvals"]],
        "ticktext": ticks["ticktext"],
        "thickness": 12,
        "outlinewidth": 0,
    }
    marker = {
        "color": [low],
        "cmin": low,
        "cmax": high,
        "colorscale": COLOUR_SCALE,
        "colorbar": colour_bar,
        "showscale": True,
    }
    return graph_objects().Scatter(
        x=[None], y=[None], mode="markers", marker=marker, showlegend=False, hoverinfo="skip"
    )


def _log_range(bars: Sequence[Bar]) -> tuple[float, float]:
    logs = [log10(bar.multiplier) for bar in bars]
    return min(logs), min(logs) + (max(logs) - min(logs) or 1.0)


def _text_colours(bars: Sequence[Bar]) -> list[str]:
    """A colour for the text on each bar that contrasts with the bar."""
    logs = [log10(bar.multiplier) for bar in bars]
    middle = 0.45 * min(logs) + 0.55 * max(logs)
    return [ON_DARK if log < middle else ON_LIGHT for log in logs]


def _hover_text(bar: Bar, noun: str, rate_name: str) -> str:
    state = f"{bar.state}: {label(bar.reason)}" if bar.reason else bar.state
    return f"{noun} {bar.fork}, steps {bar.start:,} to {bar.stop:,}<br>{rate_name} {bar.multiplier:.4g}<br>{state}"


def _branches(data: Lineage, *, on_best_path: bool) -> Any:
    x: list[Any] = [None]  # a line without points has an entry in the legend too
    y: list[Any] = [None]
    for branch in data.branches:
        if branch.on_best_path == on_best_path and branch.from_row != branch.to_row:
            x += [branch.border, branch.border, None]
            y += [branch.from_row, branch.to_row, None]
    return graph_objects().Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": LIGHT.failed, "width": 2.5} if on_best_path else {"color": LIGHT.clone, "width": 1.2},
        name="path to the best fork" if on_best_path else "clone of",
        hoverinfo="skip",
        showlegend=bool(data.branches),
    )


def _crosses(bars: Sequence[Bar]) -> Any:
    """A cross at the end of the last bar of each failed fork."""
    colours = dict(zip(bars, _text_colours(bars), strict=True))
    last = {bar.fork: bar for bar in bars if bar.state == "failed"}.values()
    return graph_objects().Scatter(
        x=[bar.last - 0.15 for bar in last],
        y=[bar.row for bar in last],
        mode="markers",
        name="failed",
        showlegend=False,
        marker={"symbol": "x-thin", "size": 8, "line": {"color": [colours[bar] for bar in last], "width": 2}},
        hoverinfo="skip",
    )
