"""One style for every figure: colours that people who are colour-blind can tell apart, on light paper and on dark.

Figures are drawn in the colours of `LIGHT`; `style` exchanges them for those of `DARK`. Any page can do the same with
the pairs in `DARK_FOR`, without a second copy of the data.
"""

from importlib import import_module
from typing import Any, NamedTuple

from paceline.errors import InputError

Figure = Any
"""A plotly figure: plotly has no types, and is imported when the first figure is drawn."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
SCALE = "Cividis"  # of grids: even in lightness, and the same to all eyes


class Palette(NamedTuple):
    """Colours by what they say; data in Okabe and Ito's. Those of one palette differ from each other."""

    paper: str
    ink: str
    quiet: str
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
    quiet="#59636e",
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
    quiet="#a9b1ba",
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
DARK_FOR = dict(zip(LIGHT, DARK, strict=True))
TASKS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8a6d00")
"""Colours of tasks and studies, in turn; DARK_FOR exchanges those that it knows."""
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross")


def graph_objects() -> Any:
    """plotly.graph_objects, or what to install."""
    try:
        return import_module("plotly.graph_objects")
    except ImportError as error:
        raise InputError("a figure needs plotly, which is not installed: pip install 'paceline[plot]'") from error


def subplots(**settings: Any) -> Figure:
    """An empty figure of several panels."""
    graph_objects()
    return import_module("plotly.subplots").make_subplots(**settings)


def framed(figure: Figure, title: str, *, height: int = 420, note: str = "") -> Figure:
    """Give a figure its title, fonts, colours and margins; the width is that of the page.

    A `note` follows the title and is kept in `layout.meta`, for pages that have a heading of their own.
    """
    p = LIGHT
    axis = {
        "gridcolor": p.grid,
        "linecolor": p.quiet,
        "tickcolor": p.quiet,
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
        font={"family": FONT, "size": 13, "color": p.ink},
        paper_bgcolor=p.paper,
        plot_bgcolor=p.paper,
        hoverlabel={"bgcolor": p.paper, "bordercolor": p.quiet, "font": {"color": p.ink, "family": FONT}},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        margin={"l": 60, "r": 16, "t": 84, "b": 56},
        height=height,
        meta=note,
        autosize=True,
        hovermode="closest",
    )
    return figure


def style(figure: Figure, dark: bool) -> Figure:
    """The same figure in light or dark colours; the one given is left as it is."""
    pairs = DARK_FOR if dark else {there: here for here, there in DARK_FOR.items()}
    return graph_objects().Figure(_exchanged(figure.to_plotly_json(), {k.lower(): v for k, v in pairs.items()}))


def _exchanged(part: Any, pairs: dict[str, str]) -> Any:
    """The data of a figure with every colour exchanged that has a partner."""
    if isinstance(part, dict):
        return {key: _exchanged(item, pairs) for key, item in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_exchanged(item, pairs) for item in part]  # pyright: ignore[reportUnknownVariableType]
    return pairs.get(part.lower(), part) if isinstance(part, str) else part
