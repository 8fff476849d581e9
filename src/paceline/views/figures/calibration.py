"""Whether the bands of forecasts hold the share of observations that they should."""

from collections.abc import Sequence

from paceline.views.bands import Check, Coverage, checks, coverage, forecast_bands
from paceline.views.data import StudyView
from paceline.views.figures.axes import step_axis
from paceline.views.figures.style import LIGHT, Figure, graph_objects, set_layout, subplots

LEVELS = [i / 20 for i in range(21)]


def calibration(view: StudyView) -> Figure | None:
    """The share of observations below each level of their forecast, and the level of each observation over steps.

    Levels between the three quantiles of the journal come from a normal distribution (`views.bands`).
    """
    results = [check for band in forecast_bands(view) for check in checks(band)]
    summary = coverage(results)
    if summary is None:
        return None
    figure = subplots(
        rows=2,
        cols=1,
        row_heights=[0.62, 0.38],
        vertical_spacing=0.16,
        subplot_titles=[_coverage_title(summary), "level of each observation in its forecast"],
    )
    _add_shares(figure, results, summary)
    _add_levels(figure, results, by_run=bool(view.tasks))
    set_layout(figure, "Calibration of forecasts", height=640)
    ticks = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["0", "25 %", "50 %", "75 %", "100 %"]}
    figure.update_xaxes(title_text="level of the forecast", range=[0, 1], row=1, **ticks)
    figure.update_yaxes(title_text="observed share", range=[-0.02, 1.02], row=1, **ticks)
    figure.update_xaxes({**step_axis(), "title_text": "run" if view.tasks else "step"}, row=2)
    figure.update_yaxes(title_text="level", range=[-0.03, 1.03], row=2, **ticks)
    figure.update_layout(margin_t=120, legend_y=1.06)
    figure.update_annotations(font_size=13)
    return figure


def _coverage_title(summary: Coverage) -> str:
    return f"{100 * summary.inside:.0f} % of {summary.checks:,} inside the 90 % band"


def _add_shares(figure: Figure, results: Sequence[Check], summary: Coverage) -> None:
    scatter = graph_objects().Scatter
    shares = [sum(check.level <= level for check in results) / len(results) for level in LEVELS]
    hover = "%{y:.1%} of observations lie below the %{x:.0%} level<extra></extra>"
    for trace in (
        scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            line={"color": LIGHT.muted, "width": 1.2, "dash": "dot"},
            name="ideal",
            hoverinfo="skip",
        ),
        scatter(
            x=LEVELS,
            y=shares,
            mode="lines",
            line={"color": LIGHT.best, "width": 1.6},
            name="other levels",
            hovertemplate=hover,
        ),
        scatter(
            x=[level for level, _ in summary.below],
            y=[share for _, share in summary.below],
            mode="markers",
            marker={"size": 10, "color": LIGHT.best},
            name="quantiles",
            hovertemplate=hover,
        ),
    ):
        figure.add_trace(trace, row=1, col=1)


def _add_levels(figure: Figure, results: Sequence[Check], *, by_run: bool) -> None:
    for inside in (True, False):
        part = [check for check in results if check.inside == inside]
        marker = (
            {"size": 5, "color": LIGHT.muted} if inside else {"size": 6, "color": LIGHT.failed, "symbol": "diamond"}
        )
        points = graph_objects().Scatter(
            x=[check.fork if by_run else check.step for check in part],
            y=[check.level for check in part],
            mode="markers",
            marker={**marker, "opacity": 0.75},
            name="inside the band" if inside else "outside",
            customdata=[[check.fork, check.step] for check in part],
            hovertemplate="fork %{customdata[0]}, step %{customdata[1]:,}: at %{y:.0%} of its forecast<extra></extra>",
            cliponaxis=False,
        )
        figure.add_trace(points, row=2, col=1)
