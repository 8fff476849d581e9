"""Axes, text and choices that several figures share."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite, log10
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.style import LIGHT


def value_axis(values: Iterable[float], more: Iterable[float] = (), *, linear: bool = False) -> dict[str, Any]:
    """A log scale where values are positive and span more than half a decade, else a linear one.

    The range holds most values and what lies within as much again on either side, of `more` too; what is far beyond,
    as the last values of a fork that came apart, leaves the figure.
    """
    seen = sorted(v for v in values if isfinite(v))
    if not seen:
        return {"type": "linear"}
    low, high = (seen[round(share * (len(seen) - 1))] for share in (0.02, 0.98))
    log = not linear and low > 0 and high / low > 3
    reach = log10(high / low) if log else high - low
    least, most = (low / 10**reach, high * 10**reach) if log else (low - reach, high + reach)
    kept = [v for v in (*seen, *more) if least <= v <= most and (v > 0 or not log)]
    low, high = min(kept), max(kept)
    if log:
        return {"type": "log", "range": [log10(low) - 0.05, log10(high) + 0.05], **decades(low * 0.9, high * 1.1)}
    pad = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    return {"type": "linear", "range": [low - pad, high + pad]}


def within(values: Iterable[float], axis: dict[str, Any]) -> list[float]:
    """Values for marks on an axis: those beyond its range lie on its edge, since a browser knows no 1e60 pixels."""
    if "range" not in axis:
        return list(values)
    low, high = (10.0**end if axis["type"] == "log" else end for end in axis["range"])
    return [min(max(value, low), high) for value in values]


def rate_axis(view: StudyView, rates: Iterable[float] = ()) -> dict[str, Any]:
    """A log scale over the bounds; rates that decay to zero leave it."""
    low, high = _bounds(view, rates)
    return {"type": "log", "range": [log10(low) - 0.3, log10(high) + 0.15], **decades(low / 2, high * 1.4)}


def _bounds(view: StudyView, rates: Iterable[float]) -> tuple[float, float]:
    given = view.settings.get("lr")
    seen = [rate for rate in rates if rate > 0]
    bounds = [float(given[0]), float(given[1])] if given else seen or [1e-3, 1.0]
    return min(bounds), max(bounds)


def decades(low: float, high: float, *, room: float = 1.0) -> dict[str, Any]:
    """Ticks at powers of ten, between them where there are few, and fewer than that where there are many.

    `room` is above 1 on an axis with less of it, as a horizontal one has on a phone.
    """
    span = log10(high / low) * room
    powers = range(floor(log10(low)), ceil(log10(high)) + 1, max(1, ceil(span / 8)))
    between = (1, 2, 5) if span < 1.7 else (1, 3) if span < 3.6 else (1,)
    kept = [m * 10.0**p for p in powers for m in between if low * 0.9999 <= m * 10.0**p <= high * 1.0001]
    return {"tickmode": "array", "tickvals": kept, "ticktext": [f"{tick:.3g}" for tick in kept]}


def step_axis() -> dict[str, Any]:
    """Whole steps, written out."""
    return {"title_text": "step", "tickformat": ",d", "nticks": 6, "tickangle": 0}


def step_buttons(axes: Sequence[str], steps: Iterable[int]) -> dict[str, Any]:
    """Steps on a linear or on a log scale from the first of `steps`, below the axis: decisions are often made early."""
    after = [step for step in steps if step > 0] or [1]
    plain_scale = {"type": "linear", "autorange": True, "tickmode": "auto", "dtick": None}
    ends = [log10(max(min(after), max(after) / 1000)), log10(max(after) * 1.05)]
    log_scale = {"type": "log", "range": ends, "dtick": "D2"}
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1,
        "xanchor": "right",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 28},
        "font": {"size": 11, "color": LIGHT.quiet},
        "bgcolor": LIGHT.paper,
        "bordercolor": LIGHT.grid,
        "showactive": False,
        "buttons": [
            {
                "label": label,
                "method": "relayout",
                "args": [{f"{axis}.{key}": to for axis in axes for key, to in scale.items()}],
            }
            for label, scale in (("linear", plain_scale), ("log", log_scale))
        ],
    }


def choice(labels: Sequence[str], shown: Sequence[Sequence[bool]], *, prefix: str, active: int) -> dict[str, Any]:
    """A slider over decisions; `shown` says which traces each shows."""
    return {
        "active": active,
        "currentvalue": {"prefix": prefix, "xanchor": "left", "font": {"size": 13, "color": LIGHT.ink}},
        "pad": {"t": 56, "b": 4},
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
