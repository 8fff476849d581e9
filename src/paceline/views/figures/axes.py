"""Axes, text and choices that several figures share."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.style import LIGHT

SHOWN = 70


def plain(text: str) -> str:
    """Text of a journal as plotly shows it: as it stands, with nothing in it taken for markup; long ones cut.

    >>> plain("<b>fast</b> & wide")
    '&lt;b&gt;fast&lt;/b&gt; &amp; wide'
    """
    return escape(text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}...", quote=False)


def value_name(view: StudyView) -> str:
    """What the axis of values says."""
    better = "larger" if view.settings.get("mode") == "max" else "smaller"
    return f"value, {view.of} weights ({better} is better)"


def value_axis(values: Iterable[float]) -> dict[str, Any]:
    """A log scale where values are positive and span more than half a decade, else a linear one.

    The range leaves out what lies far above or below the rest, as the last values of a fork that failed do.
    """
    seen = sorted(v for v in values if isfinite(v))
    if not seen:
        return {"type": "linear"}
    low, high = seen[0], seen[-1]
    if low > 0 and high / low > 3:
        return {"type": "log", "range": [log10(low) - 0.05, log10(high) + 0.05], **decades(low * 0.9, high * 1.1)}
    pad = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    return {"type": "linear", "range": [low - pad, high + pad]}


def rate_axis(view: StudyView, rates: Iterable[float] = ()) -> dict[str, Any]:
    """A log scale over the bounds; rates that decay to zero leave it."""
    low, high = _bounds(view, rates)
    return {"type": "log", "range": [log10(low) - 0.3, log10(high) + 0.15], **decades(low / 2, high * 1.4)}


def _bounds(view: StudyView, rates: Iterable[float]) -> tuple[float, float]:
    given = view.settings.get("lr")
    seen = [rate for rate in rates if rate > 0]
    bounds = [float(given[0]), float(given[1])] if given else seen or [1e-3, 1.0]
    return min(bounds), max(bounds)


def decades(low: float, high: float) -> dict[str, Any]:
    """Ticks at powers of ten, and between them where there are few."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    between = (1, 2, 5) if log10(high / low) < 1.7 else (1, 3) if log10(high / low) < 3.6 else (1,)
    kept = [m * 10.0**p for p in powers for m in between if low * 0.9999 <= m * 10.0**p <= high * 1.0001]
    return {"tickmode": "array", "tickvals": kept, "ticktext": [f"{tick:.3g}" for tick in kept]}


def step_buttons(axes: Sequence[str], *, y: float = 1.0) -> dict[str, Any]:
    """Steps on a linear or on a log scale: decisions are often made early."""
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1,
        "xanchor": "right",
        "y": y,
        "yanchor": "bottom",
        "pad": {"b": 4, "t": 0},
        "font": {"size": 11, "color": LIGHT.quiet},
        "bgcolor": LIGHT.paper,
        "bordercolor": LIGHT.grid,
        "showactive": False,
        "buttons": [
            {"label": label, "method": "relayout", "args": [{f"{axis}.type": scale for axis in axes}]}
            for label, scale in (("linear steps", "linear"), ("log", "log"))
        ],
    }


def choice(labels: Sequence[str], shown: Sequence[Sequence[bool]], *, prefix: str, active: int) -> dict[str, Any]:
    """A slider over decisions; `shown` says which traces each shows."""
    return {
        "active": active,
        "currentvalue": {"prefix": prefix, "xanchor": "left", "font": {"size": 13, "color": LIGHT.ink}},
        "pad": {"t": 44, "b": 4},
        "bgcolor": LIGHT.grid,
        "bordercolor": LIGHT.quiet,
        "tickcolor": LIGHT.paper,
        "minorticklen": 0,
        "ticklen": 0,
        "font": {"size": 1, "color": LIGHT.paper},  # its labels would overlap: the chosen one is above
        "steps": [
            {"label": label, "method": "restyle", "args": [{"visible": list(visible)}]}
            for label, visible in zip(labels, shown, strict=True)
        ],
    }
