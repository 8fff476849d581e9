"""Who came from whom, and at which rates."""

from importlib import import_module
from math import log10
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import decades
from paceline.views.figures.labels import label
from paceline.views.figures.style import LIGHT, SCALE, Figure, framed, graph_objects
from paceline.views.lineage import Bar, Lineage
from paceline.views.lineage import lineage as rows_of

_ON_DARK, _ON_LIGHT = "#fffffe", "#101010"  # on the two ends of the scale, which dark pages share


def lineage(view: StudyView) -> Figure | None:
    """A bar for each stretch of a fork, coloured by its rate; lines from parents to clones; the winner's way framed."""
    found = rows_of(view)
    if found is None:
        return None
    go = graph_objects()
    shown = list(found.bars)
    peaked = any(fork.schedule.tuned_base is not None for fork in view.forks)
    what = ("multiplier" if view.tasks else "peak rate") if peaked else "rate"
    lines = [_branches(found, leads=leads) for leads in (False, True)]
    figure = go.Figure([*_bars(shown, "run" if view.tasks else "fork", what), *lines])
    if any(bar.state == "failed" for bar in shown):
        figure.add_trace(_crosses(shown))
    note = f"{found.left_out:,} earlier ones are left out" if found.left_out else ""
    title = "Runs and their schedules" if view.tasks else "Lineage of forks"
    framed(figure, title, height=min(190 + 30 * max(len(found.rows), 4), 900), note=note)
    first = min(bar.first for bar in shown)
    named = range(first, len(found.borders), max(1, (len(found.borders) - first) // 4))
    figure.update_xaxes(
        title_text="step" if view.tasks else "step of each decision (evenly spaced)",
        tickvals=list(named),
        ticktext=[f"{found.borders[i]:,}" for i in named],
        range=[first - 0.05, len(found.borders) - 0.95],
        showgrid=True,
        tickangle=0,
    )
    figure.update_yaxes(
        tickvals=list(range(len(found.rows))),
        ticktext=[label(row) for row in found.rows],
        range=[len(found.rows) - 0.4, -0.6],
        showgrid=False,
        ticks="",
    )
    figure.update_layout(uniformtext={"mode": "hide", "minsize": 9}, bargap=0.25, legend_y=1.02)
    return figure


def _bars(bars: list[Bar], kind: str, what: str) -> list[Any]:
    """The bars, and a point that nobody sees, which brings the scale of their colours."""
    go, logs = graph_objects(), [log10(bar.multiplier) for bar in bars]
    low, reach = min(logs), max(logs) - min(logs) or 1.0
    shades: list[str] = import_module("plotly.colors").sample_colorscale(SCALE, [(at - low) / reach for at in logs])
    ticks = decades(10**low * 0.99, 10 ** (low + reach) * 1.01)
    drawn = go.Bar(
        orientation="h",
        base=[bar.first for bar in bars],
        x=[bar.last - bar.first for bar in bars],
        y=[bar.row for bar in bars],
        text=[str(bar.fork) for bar in bars],
        textposition="inside",
        insidetextanchor="start",
        insidetextfont={"color": _seen_on(bars)},
        textangle=0,
        hovertext=[_told(bar, kind, what) for bar in bars],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=[bar.multiplier for bar in bars],
        marker={
            "color": shades,
            "line": {
                "color": [LIGHT.failed if bar.leads else LIGHT.paper for bar in bars],
                "width": [2.5 if bar.leads else 1 for bar in bars],
            },
        },
        showlegend=False,
    )
    scale = {
        "title": {"text": what, "side": "right"},
        "tickvals": [log10(tick) for tick in ticks["tickvals"]],
        "ticktext": ticks["ticktext"],
        "thickness": 12,
        "outlinewidth": 0,
    }
    mark = {"color": [low], "cmin": low, "cmax": low + reach, "colorscale": SCALE, "colorbar": scale, "showscale": True}
    return [drawn, go.Scatter(x=[None], y=[None], mode="markers", marker=mark, showlegend=False, hoverinfo="skip")]


def _seen_on(bars: list[Bar]) -> list[str]:
    """A colour that shows on each bar."""
    logs = [log10(bar.multiplier) for bar in bars]
    middle = 0.45 * min(logs) + 0.55 * max(logs)
    return [_ON_DARK if at < middle else _ON_LIGHT for at in logs]


def _told(bar: Bar, kind: str, what: str) -> str:
    became = f"{bar.state}: {label(bar.reason)}" if bar.reason else bar.state
    return f"{kind} {bar.fork}, steps {bar.start:,} to {bar.stop:,}<br>{what} {bar.multiplier:.4g}<br>{became}"


def _branches(found: Lineage, *, leads: bool) -> Any:
    x: list[Any] = [None]  # a line of no length is in the legend too
    y: list[Any] = [None]
    for branch in found.branches:
        if branch.leads == leads and branch.from_row != branch.to_row:
            x += [branch.border, branch.border, None]
            y += [branch.from_row, branch.to_row, None]
    line = {"color": LIGHT.failed, "width": 2.5} if leads else {"color": LIGHT.clone, "width": 1.2}
    name = "way to the best fork" if leads else "clone of"
    return graph_objects().Scatter(
        x=x, y=y, mode="lines", line=line, name=name, hoverinfo="skip", showlegend=bool(found.branches)
    )


def _crosses(bars: list[Bar]) -> Any:
    """At the end of the last bar of each fork that failed."""
    colours = dict(zip(bars, _seen_on(bars), strict=True))
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
