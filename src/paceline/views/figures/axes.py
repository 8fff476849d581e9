"""Axes that several figures share: of steps, of values and of learning rates."""

from collections.abc import Iterable
from math import ceil, floor, isfinite, log10
from typing import Any

from paceline.views.data import StudyView

OUTLIER_SHARE = 0.02  # of the values, on each side, does not set the range of an axis
LOG_RATIO = 3  # of the highest value to the lowest: above this an axis of values has a log scale
MAX_LABELS = 8
STEP_LABELS = 6
DECISION_LABELS = 4  # on an axis of decisions, whose labels are steps


def value_axis(values: Iterable[float], others: Iterable[float] = (), *, linear: bool = False) -> dict[str, Any]:
    """An axis of values: a log scale if they are positive and span more than half a decade, else a linear one.

    The range holds most of the values. It also holds values of `others` that lie no further outside than the range is
    wide. Values far outside, such as the last ones of a diverged fork, are not shown.

    Args:
        values: the values that set the range.
        others: values that are also drawn.
        linear: whether the scale must be linear.
    """
    column = sorted(value for value in values if isfinite(value))
    if not column:
        return {"type": "linear"}
    low, high = (column[round(share * (len(column) - 1))] for share in (OUTLIER_SHARE, 1 - OUTLIER_SHARE))
    log = not linear and low > 0 and high / low > LOG_RATIO
    width = log10(high / low) if log else high - low
    least, most = (low / 10**width, high * 10**width) if log else (low - width, high + width)
    inside = [value for value in (*column, *others) if least <= value <= most and (value > 0 or not log)]
    low, high = min(inside), max(inside)
    if log:
        return {"type": "log", "range": [log10(low) - 0.05, log10(high) + 0.05], **log_ticks(low * 0.9, high * 1.1)}
    margin = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    return {"type": "linear", "range": [low - margin, high + margin]}


def clip_to_axis(values: Iterable[float], axis: dict[str, Any]) -> list[float]:
    """Values for marks on an axis. Those beyond its range move to its edge: a browser cannot draw 1e60 pixels away."""
    if "range" not in axis:
        return list(values)
    low, high = (10.0**end if axis["type"] == "log" else end for end in axis["range"])
    return [min(max(value, low), high) for value in values]


def rate_axis(view: StudyView, rates: Iterable[float] = ()) -> dict[str, Any]:
    """A log scale over the bounds of the rate. Rates that decay to zero leave the figure below."""
    bounds = view.settings.get("lr") or [rate for rate in rates if rate > 0] or [1e-3, 1.0]
    low, high = float(min(bounds)), float(max(bounds))
    return {"type": "log", "range": [log10(low) - 0.3, log10(high) + 0.15], **log_ticks(low / 2, high * 1.4)}


def log_ticks(low: float, high: float, *, crowding: float = 1.0) -> dict[str, Any]:
    """Ticks at powers of ten, with some between them on a short axis, and fewer on a long one.

    Args:
        low: the lower end of the axis.
        high: the upper end.
        crowding: above 1 for an axis with less room, such as a horizontal one on a phone.
    """
    span = log10(high / low) * crowding
    powers = range(floor(log10(low)), ceil(log10(high)) + 1, max(1, ceil(span / MAX_LABELS)))
    multiples = (1, 2, 5) if span < 1.7 else (1, 3) if span < 3.6 else (1,)
    candidates = [multiple * 10.0**power for power in powers for multiple in multiples]
    ticks = [tick for tick in candidates if low * 0.9999 <= tick <= high * 1.0001]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [_tick_label(tick) for tick in ticks]}


def _tick_label(tick: float) -> str:
    return f"{tick:,.0f}" if 1e3 <= tick < 1e6 else f"{tick:.3g}"


def step_axis() -> dict[str, Any]:
    """An axis of steps, with labels such as "12,000"."""
    return {"title_text": "step", "tickformat": ",d", "nticks": STEP_LABELS, "tickangle": 0}
