"""One style for all figures: colours that colour-blind people can tell apart, on light and on dark pages.

Figures are drawn in the colours of `LIGHT`, and `recolour` replaces these with the colours of `DARK`. A page can do the
same with the pairs in `DARK_COLOURS`, so it needs no second copy of a figure.
"""

from importlib import import_module
from typing import Any, NamedTuple

from paceline.errors import InputError

Figure = Any
"""A plotly figure. Plotly has no type annotations, and is imported only when a figure is drawn."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
COLOUR_SCALE = "Cividis"  # even in lightness, and the same for colour-blind people


class Palette(NamedTuple):
    """Colours by what they stand for; those of forks are Okabe and Ito's. No two are equal within a palette."""

    paper: str
    ink: str
    muted: str
    grid: str
    best: str
    best_band: str
    failed: str
    dropped: str
    ended: str
    running: str
    clone: str
    halo: str


LIGHT = Palette(
    paper="#ffffff",
    ink="#1f2328",
    muted="#59636e",
    grid="#e4e7eb",
    best="#0072B2",
    best_band="rgba(0,114,178,0.20)",
    failed="#D55E00",
    dropped="#a3a9b1",
    ended="#E69F00",
    running="#009E73",
    clone="#6e7781",
    halo="#fefefe",
)
DARK = Palette(
    paper="#14171c",
    ink="#e6e8eb",
    muted="#a9b1ba",
    grid="#2c323a",
    best="#56B4E9",
    best_band="rgba(86,180,233,0.25)",
    failed="#F0733A",
    dropped="#6b737d",
    ended="#E69F01",
    running="#19B88A",
    clone="#98a1ab",
    halo="#15181d",
)
DARK_COLOURS = dict(zip(LIGHT, DARK, strict=True))
SERIES_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8a6d00")
"""Colours of tasks and of studies, in turn; a dark page replaces those that are in DARK_COLOURS."""
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross")


def graph_objects() -> Any:
    """The module plotly.graph_objects, or an error that names the package to install."""
    try:
        return import_module("plotly.graph_objects")
    except ImportError as error:
        raise InputError("a figure needs plotly, which is not installed: pip install 'paceline[plot]'") from error


def subplots(**settings: Any) -> Figure:
    """An empty figure of several panels."""
    graph_objects()
    return import_module("plotly.subplots").make_subplots(**settings)


def set_layout(figure: Figure, title: str, *, height: int = 420, note: str = "") -> Figure:
    """Give a figure its title, fonts, colours and margins. It takes the width of its page.

    The note follows the title. `layout.meta` holds it too, for pages that put a heading of their own above the figure.
    """
    colours = LIGHT
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.muted,
        "tickcolor": colours.muted,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    figure.update_layout(
        template={"layout": {"xaxis": axis, "yaxis": axis}},
        title={
            "text": f"{title} ({note})" if note else title,
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 8},
            "font": {"size": 16},
        },
        font={"family": FONT, "size": 13, "color": colours.ink},
        paper_bgcolor=colours.paper,
        plot_bgcolor=colours.paper,
        hoverlabel={
            "bgcolor": colours.paper,
            "bordercolor": colours.muted,
            "font": {"color": colours.ink, "family": FONT},
        },
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        margin={"l": 60, "r": 16, "t": 84, "b": 56},
        height=height,
        meta=note,
        autosize=True,
        hovermode="closest",
    )
    return figure


def recolour(figure: Figure, *, dark: bool) -> Figure:
    """A copy of a figure in dark or in light colours."""
    pairs = DARK_COLOURS if dark else {there: here for here, there in DARK_COLOURS.items()}
    by_lower_case = {colour.lower(): other for colour, other in pairs.items()}
    return graph_objects().Figure(_replace_colours(figure.to_plotly_json(), by_lower_case))


def _replace_colours(part: Any, pairs: dict[str, str]) -> Any:
    """The data of a figure with another colour for each one in `pairs`."""
    if isinstance(part, dict):
        return {key: _replace_colours(item, pairs) for key, item in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_replace_colours(item, pairs) for item in part]  # pyright: ignore[reportUnknownVariableType]
    return pairs.get(part.lower(), part) if isinstance(part, str) else part
