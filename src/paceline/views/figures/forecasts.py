"""Forecasts as they were made, and what then happened."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from paceline.views.bands import Check, Fan, checks, fans
from paceline.views.curves import thinned
from paceline.views.data import StudyView
from paceline.views.figures.axes import choice, step_axis, value_axis, within
from paceline.views.figures.labels import weights_label
from paceline.views.figures.style import LIGHT, Figure, framed, graph_objects

SHOWN = 40  # decisions that a slider can be set to
POINTS = 60  # observations drawn of one fan


def forecasts(view: StudyView) -> Figure | None:
    """The fan of each proposal at its decision, with what was then observed; of a family, the end of each run."""
    found = fans(view)
    if not found:
        return None
    if all(len(fan.steps) == 1 for fan in found):
        return _ends(found)
    rounds = [list(group) for _, group in groupby(found, key=lambda fan: fan.round)][-SHOWN:]
    axis = _reach(view, found)
    figure = graph_objects().Figure([trace for fans_of in rounds for trace in _round(fans_of, axis)])
    for name, look in _legend().items():
        figure.add_trace(graph_objects().Scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look))
    framed(figure, "Forecasts, and what then happened", height=520)
    labels = ["all", *(f"{fans_of[0].round}, at step {fans_of[0].start:,}" for fans_of in rounds)]
    each, key = len(_round(rounds[0], axis)), [True] * len(_legend())
    shown = [[True] * each * len(rounds) + key]
    shown += [[i == k for i in range(len(rounds)) for _ in range(each)] + key for k in range(len(rounds))]
    figure.update_layout(sliders=[choice(labels, shown, prefix="decision: ", active=0)], margin_b=124)
    figure.update_xaxes(step_axis())
    figure.update_yaxes(title_text=weights_label(found[-1].of), **axis)
    return figure


def _reach(view: StudyView, found: Sequence[Fan]) -> dict[str, Any]:
    """As far as the best run went, and as far again: bands beyond that say no more than that they are wide."""
    seen = [v for fan in found for v in (*fan.seen, *([] if fan.start_value is None else [fan.start_value]))]
    bands = [v for fan in found for v in (*fan.low, *fan.high)]
    way = {fork.fork for fork in view.line_of(view.best.fork)} if view.best is not None else set[int]()
    usual = [v for fan in found if fan.fork in way for v in fan.seen]
    return value_axis(usual or seen or bands, [*seen, *bands], linear=min(bands) <= 0)


def _legend() -> dict[str, dict[str, Any]]:
    wide = {"color": LIGHT.best_band, "width": 10}
    return {
        "90 % band": {"mode": "lines", "line": wide},
        "median": {"mode": "lines", "line": {"color": LIGHT.best, "width": 2}},
        "observed": {"mode": "markers", "marker": {"color": LIGHT.quiet, "size": 5}},
        "observed, outside the band": {"mode": "markers", "marker": _outside(7)},
    }


def _outside(size: int) -> dict[str, Any]:
    return {"color": LIGHT.failed, "size": size, "symbol": "diamond"}


def _round(of_round: Sequence[Fan], axis: dict[str, Any]) -> list[Any]:
    """Bands, medians, observations, and the checked ones outside the band, of one decision."""
    go, quiet = graph_objects(), {"showlegend": False}
    band, middle = _bands(of_round), _medians(of_round)
    seen = [point for fan in of_round for point in zip(*thinned(fan.seen_steps, fan.seen, most=POINTS), strict=True)]
    missed = [check for fan in of_round for check in checks(fan) if not check.inside]
    told = {
        "customdata": [[c.fork, c.low, c.high, c.seen] for c in missed],
        "hovertemplate": "fork %{customdata[0]}, step %{x:,}: %{customdata[3]:.4g}<br>"
        "forecast %{customdata[1]:.4g} to %{customdata[2]:.4g}<extra></extra>",
    }
    return [
        go.Scatter(
            **band, mode="lines", fill="toself", fillcolor=LIGHT.best_band, line_width=0, hoverinfo="skip", **quiet
        ),
        go.Scatter(**middle, mode="lines", line={"color": LIGHT.best, "width": 1.6}, **quiet),
        go.Scatter(
            x=[step for step, _ in seen],
            y=within((value for _, value in seen), axis),
            customdata=[value for _, value in seen],
            mode="markers",
            marker={"color": LIGHT.quiet, "size": 2.6},
            hovertemplate="step %{x:,}: %{customdata:.4g}<extra></extra>",
            **quiet,
        ),
        go.Scatter(
            x=[c.step for c in missed],
            y=within((c.seen for c in missed), axis),
            mode="markers",
            marker=_outside(5),
            **quiet,
            **told,
        ),
    ]


def _bands(of_round: Sequence[Fan]) -> dict[str, list[Any]]:
    """Outlines, with a gap after each: out along the low side, back along the high one."""
    x, y = list[Any](), list[Any]()
    for fan in of_round:
        tip = [] if fan.start_value is None else [(fan.start, fan.start_value)]
        out = [*tip, *zip(fan.steps, fan.low, strict=True)]
        back = [*zip(reversed(fan.steps), reversed(fan.high), strict=True), *tip]
        x += [*(step for step, _ in (*out, *back)), None]
        y += [*(value for _, value in (*out, *back)), None]
    return {"x": x, "y": y}


def _medians(of_round: Sequence[Fan]) -> dict[str, Any]:
    x, y, told = list[Any](), list[Any](), list[Any]()
    for fan in of_round:
        tip = [] if fan.start_value is None else [(fan.start, fan.start_value)]
        line = [*tip, *zip(fan.steps, fan.median, strict=True)]
        x += [*(step for step, _ in line), None]
        y += [*(value for _, value in line), None]
        told += [fan.fork] * (len(line) + 1)
    template = "fork %{customdata}, expected at step %{x:,}: %{y:.4g}<extra></extra>"
    return {"x": x, "y": y, "customdata": told, "hovertemplate": template}


def _ends(found: Sequence[Fan]) -> Figure:
    """Runs side by side: the band of each end, and where it ended."""
    go = graph_objects()
    names = [f"run {fan.fork}" for fan in found]
    reach = {"array": [f.high[0] - f.median[0] for f in found], "arrayminus": [f.median[0] - f.low[0] for f in found]}
    axis = value_axis(v for f in found for v in (*f.low, *f.high, *f.seen[-1:]))
    done: list[Check] = [check for fan in found for check in checks(fan)]
    figure = go.Figure(
        [
            go.Scatter(
                x=names,
                y=[fan.median[0] for fan in found],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "color": LIGHT.best,
                    "thickness": 1.6,
                    "width": 6,
                    **reach,
                },
                mode="markers",
                marker={"color": LIGHT.best, "size": 8, "symbol": "line-ew-open", "line": {"width": 2}},
                name="forecast of its end, 90 % band",
            ),
            *(
                go.Scatter(
                    x=[f"run {c.fork}" for c in done if c.inside == inside],
                    y=within((c.seen for c in done if c.inside == inside), axis),
                    mode="markers",
                    marker={"color": LIGHT.quiet, "size": 8} if inside else _outside(9),
                    name="where it ended" if inside else "outside the band",
                )
                for inside in sorted({c.inside for c in done}, reverse=True)
            ),
        ]
    )
    framed(figure, "Forecasts, and what then happened", height=420)
    figure.update_xaxes(type="category")
    figure.update_yaxes(title_text=weights_label(found[-1].of), **axis)
    return figure
