"""Whether bands hold what they promise."""

from paceline.views.bands import Check, Coverage, checks, coverage, fans
from paceline.views.data import StudyView
from paceline.views.figures.axes import step_axis
from paceline.views.figures.style import LIGHT, Figure, framed, graph_objects, subplots

LEVELS = [i / 20 for i in range(21)]


def calibration(view: StudyView) -> Figure | None:
    """Share of observations below each level of their forecast, and where each lay in its forecast over the steps."""
    found = tuple(check for fan in fans(view) for check in checks(fan))
    covered = coverage(found)
    if covered is None:
        return None
    figure = subplots(
        rows=2,
        cols=1,
        row_heights=[0.62, 0.38],
        vertical_spacing=0.16,
        subplot_titles=[_told(covered), "where in its forecast each lay"],
    )
    _curve(figure, found, covered.below)
    _scatter(figure, found, by_run=bool(view.tasks))
    framed(figure, "Calibration of forecasts", height=640)
    ticks = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["0", "25 %", "50 %", "75 %", "100 %"]}
    figure.update_xaxes(title_text="level of the forecast", range=[0, 1], row=1, **ticks)
    figure.update_yaxes(title_text="observed share", range=[-0.02, 1.02], row=1, **ticks)
    figure.update_xaxes({**step_axis(), "title_text": "run" if view.tasks else "step"}, row=2)
    figure.update_yaxes(title_text="level", range=[-0.03, 1.03], row=2, **ticks)
    figure.update_layout(margin_t=120, legend_y=1.06)
    figure.update_annotations(font_size=13)
    return figure


def _told(covered: Coverage) -> str:
    return f"{100 * covered.inside:.0f} % of {covered.checked:,} inside the 90 % band"


def _curve(figure: Figure, found: tuple[Check, ...], journaled: tuple[tuple[float, float], ...]) -> None:
    go = graph_objects()
    shares = [sum(check.level <= level for check in found) / len(found) for level in LEVELS]
    ideal = {"color": LIGHT.quiet, "width": 1.2, "dash": "dot"}
    thin = {"color": LIGHT.best, "width": 1.6}
    dots = {"x": [level for level, _ in journaled], "y": [share for _, share in journaled]}
    told = "%{y:.1%} of observations lie below the %{x:.0%} level<extra></extra>"
    for trace in (
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=ideal, name="as promised", hoverinfo="skip"),
        go.Scatter(x=LEVELS, y=shares, mode="lines", line=thin, name="between, by a normal", hovertemplate=told),
        go.Scatter(
            **dots, mode="markers", marker={"size": 10, "color": LIGHT.best}, name="journaled", hovertemplate=told
        ),
    ):
        figure.add_trace(trace, row=1, col=1)


def _scatter(figure: Figure, found: tuple[Check, ...], *, by_run: bool) -> None:
    go = graph_objects()
    for inside in (True, False):
        part = [check for check in found if check.inside == inside]
        mark = {"size": 5, "color": LIGHT.quiet} if inside else {"size": 6, "color": LIGHT.failed, "symbol": "diamond"}
        dots = go.Scatter(
            x=[check.fork if by_run else check.step for check in part],
            y=[check.level for check in part],
            mode="markers",
            marker={**mark, "opacity": 0.75},
            name="inside the band" if inside else "outside",
            customdata=[[check.fork, check.step] for check in part],
            hovertemplate="fork %{customdata[0]}, step %{customdata[1]:,}: at %{y:.0%} of its forecast<extra></extra>",
            cliponaxis=False,
        )
        figure.add_trace(dots, row=2, col=1)
