"""Forecasts as they were made, and the observations that followed."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from paceline.views.bands import Check, ForecastBand, checks, forecast_bands
from paceline.views.curves import thin
from paceline.views.data import StudyView
from paceline.views.figures.axes import clip_to_axis, step_axis, value_axis
from paceline.views.figures.controls import MAX_DECISIONS, decision_slider
from paceline.views.figures.labels import weights_label
from paceline.views.figures.style import LIGHT, Figure, graph_objects, set_layout

TITLE = "Forecasts and observations"
MAX_BAND_POINTS = 60
"""Observations that are drawn for each forecast."""


def forecasts(view: StudyView) -> Figure | None:
    """The forecasts of each decision with the observations that followed; of a family, the end of each run."""
    bands = forecast_bands(view)
    if not bands:
        return None
    if all(len(band.steps) == 1 for band in bands):
        return _final_values(bands)
    rounds = [list(group) for _, group in groupby(bands, key=lambda band: band.round)][-MAX_DECISIONS:]
    axis = _value_range(view, bands)
    traces = [_round_traces(round_bands, axis) for round_bands in rounds]
    legend = _legend()
    figure = graph_objects().Figure([trace for of_round in traces for trace in of_round] + legend)
    set_layout(figure, TITLE, height=520)
    labels = ["all", *(f"{round_bands[0].round}, at step {round_bands[0].start:,}" for round_bands in rounds)]
    visible = [[True] * (sum(map(len, traces)) + len(legend))]
    visible += [
        [i == k for i, part in enumerate(traces) for _ in part] + [True] * len(legend) for k in range(len(traces))
    ]
    figure.update_layout(sliders=[decision_slider(labels, visible, active=0)], margin_b=124)
    figure.update_xaxes(step_axis())
    figure.update_yaxes(title_text=weights_label(bands[-1].weights), **axis)
    return figure


def _value_range(view: StudyView, bands: Sequence[ForecastBand]) -> dict[str, Any]:
    """An axis that holds the values of the best run and as much again: wider bands say only that they are wide.

    Before anything has followed a forecast, it holds the medians.
    """
    starts = [band.start_value for band in bands if band.start_value is not None]
    followed = [value for band in bands for value in band.observed_values]
    observed = followed + starts
    forecast = [value for band in bands for value in (*band.low, *band.high)]
    medians = [value for band in bands for value in band.median]
    path = {fork.fork for fork in view.lineage_of(view.best.fork)} if view.best is not None else set[int]()
    best = [value for band in bands if band.fork in path for value in band.observed_values]
    return value_axis(
        best or (observed if followed else medians + starts), [*observed, *forecast], linear=min(forecast) <= 0
    )


def _legend() -> list[Any]:
    """Traces without points, which give the legend its entries."""
    looks: dict[str, dict[str, Any]] = {
        "90 % band": {"mode": "lines", "line": {"color": LIGHT.best_band, "width": 10}},
        "median": {"mode": "lines", "line": {"color": LIGHT.best, "width": 2}},
        "observed": {"mode": "markers", "marker": {"color": LIGHT.muted, "size": 5}},
        "observed, outside the band": {"mode": "markers", "marker": _outside_marker(7)},
    }
    scatter = graph_objects().Scatter
    return [scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look) for name, look in looks.items()]


def _outside_marker(size: int) -> dict[str, Any]:
    return {"color": LIGHT.failed, "size": size, "symbol": "diamond"}


def _round_traces(bands: Sequence[ForecastBand], axis: dict[str, Any]) -> list[Any]:
    """Bands, medians, observations, and the observations outside the bands, of one decision."""
    scatter = graph_objects().Scatter
    band_traces = [
        scatter(
            **_outlines(bands),
            mode="lines",
            fill="toself",
            fillcolor=LIGHT.best_band,
            line_width=0,
            hoverinfo="skip",
            showlegend=False,
        ),
        scatter(**_medians(bands), mode="lines", line={"color": LIGHT.best, "width": 1.6}, showlegend=False),
    ]
    return [*band_traces, _observations(bands, axis), _misses(bands, axis)]


def _observations(bands: Sequence[ForecastBand], axis: dict[str, Any]) -> Any:
    points = [
        point
        for band in bands
        for point in zip(*thin(band.observed_steps, band.observed_values, max_points=MAX_BAND_POINTS), strict=True)
    ]
    return graph_objects().Scatter(
        x=[step for step, _ in points],
        y=clip_to_axis((value for _, value in points), axis),
        customdata=[value for _, value in points],
        mode="markers",
        marker={"color": LIGHT.muted, "size": 2.6},
        hovertemplate="step %{x:,}: %{customdata:.4g}<extra></extra>",
        showlegend=False,
    )


def _misses(bands: Sequence[ForecastBand], axis: dict[str, Any]) -> Any:
    """The checks that lie outside their bands."""
    misses = [check for band in bands for check in checks(band) if not check.inside]
    return graph_objects().Scatter(
        x=[check.step for check in misses],
        y=clip_to_axis((check.value for check in misses), axis),
        customdata=[[check.fork, check.low, check.high, check.value] for check in misses],
        mode="markers",
        marker=_outside_marker(5),
        hovertemplate="fork %{customdata[0]}, step %{x:,}: %{customdata[3]:.4g}<br>"
        "forecast %{customdata[1]:.4g} to %{customdata[2]:.4g}<extra></extra>",
        showlegend=False,
    )


def _outlines(bands: Iterable[ForecastBand]) -> dict[str, list[Any]]:
    """The outline of each band: forward along its lower side and back along its upper one, with a gap after it."""
    x, y = list[Any](), list[Any]()
    for band in bands:
        tip = _tip(band)
        lower = [*tip, *zip(band.steps, band.low, strict=True)]
        upper = [*zip(reversed(band.steps), reversed(band.high), strict=True), *tip]
        x += [*(step for step, _ in (*lower, *upper)), None]
        y += [*(value for _, value in (*lower, *upper)), None]
    return {"x": x, "y": y}


def _medians(bands: Iterable[ForecastBand]) -> dict[str, Any]:
    x, y, forks = list[Any](), list[Any](), list[Any]()
    for band in bands:
        line = [*_tip(band), *zip(band.steps, band.median, strict=True)]
        x += [*(step for step, _ in line), None]
        y += [*(value for _, value in line), None]
        forks += [band.fork] * (len(line) + 1)
    hover = "fork %{customdata}, expected at step %{x:,}: %{y:.4g}<extra></extra>"
    return {"x": x, "y": y, "customdata": forks, "hovertemplate": hover}


def _tip(band: ForecastBand) -> list[tuple[int, float]]:
    """The point that a band starts from: the last observation before the forecast."""
    return [] if band.start_value is None else [(band.start, band.start_value)]


def _final_values(bands: Sequence[ForecastBand]) -> Figure:
    """Runs side by side: the forecast of the final value of each, and its observation."""
    results = [check for band in bands for check in checks(band)]
    axis = value_axis(value for band in bands for value in (*band.low, *band.high, *band.observed_values[-1:]))
    observations = [
        _final_observations([check for check in results if check.inside == inside], axis, inside=inside)
        for inside in sorted({check.inside for check in results}, reverse=True)
    ]
    figure = graph_objects().Figure([_final_forecasts(bands), *observations])
    set_layout(figure, TITLE, height=420)
    figure.update_xaxes(type="category")
    figure.update_yaxes(title_text=weights_label(bands[-1].weights), **axis)
    return figure


def _final_forecasts(bands: Sequence[ForecastBand]) -> Any:
    return graph_objects().Scatter(
        x=[f"run {band.fork}" for band in bands],
        y=[band.median[0] for band in bands],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [band.high[0] - band.median[0] for band in bands],
            "arrayminus": [band.median[0] - band.low[0] for band in bands],
            "color": LIGHT.best,
            "thickness": 1.6,
            "width": 6,
        },
        mode="markers",
        marker={"color": LIGHT.best, "size": 8, "symbol": "line-ew-open", "line": {"width": 2}},
        name="forecast of the final value, 90 % band",
    )


def _final_observations(results: Sequence[Check], axis: dict[str, Any], *, inside: bool) -> Any:
    return graph_objects().Scatter(
        x=[f"run {check.fork}" for check in results],
        y=clip_to_axis((check.value for check in results), axis),
        mode="markers",
        marker={"color": LIGHT.muted, "size": 8} if inside else _outside_marker(9),
        name="observed" if inside else "observed, outside the band",
    )
