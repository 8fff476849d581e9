"""Forecasts against what then happened: the bands that decisions were made with, never fitted again.

A band is a median and the 5 and 95 % quantiles of values to be observed. `checks` sets each beside the observation that
came, and says how far up its forecast that lay: exact at the three journaled quantiles, between and beyond them by the
normal distribution that fits the nearer side.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import erf, sqrt
from typing import Any, NamedTuple

from paceline.study import Interval
from paceline.views.curves import anchor, column, finite
from paceline.views.data import DecisionView, ForkView, StudyView

LOW, HIGH = 0.05, 0.95
TAIL = 1.6448536269514722  # of a standard normal, 95 % lies below


class Fan(NamedTuple):
    """A journaled forecast of a fork, of raw or averaged weights, from where it stood, and what it then observed."""

    round: int
    fork: int
    of: str
    start: int
    start_value: float | None
    steps: tuple[int, ...]
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]
    seen_steps: tuple[int, ...]
    seen: tuple[float, ...]


class Check(NamedTuple):
    """One point of a band and the observation nearest to it; `level` is the share of the forecast below that."""

    round: int
    fork: int
    step: int
    low: float
    median: float
    high: float
    seen: float
    level: float

    @property
    def inside(self) -> bool:
        """Whether the 90 % band holds it."""
        return self.low <= self.seen <= self.high


class Coverage(NamedTuple):
    """Shares of observations: inside the 90 % band, and below each journaled quantile."""

    checked: int
    inside: float
    below: tuple[tuple[float, float], ...]


def fans(view: StudyView) -> tuple[Fan, ...]:
    """All forecasts that the journal holds, in the order they were made."""
    known = {fork.fork: fork for fork in view.forks}
    return tuple(
        _fan(view, known, decision, interval, band)
        for decision in view.decisions
        for interval in decision.proposed
        for band in decision.details.get("forecast", [])
        if int(band["fork"]) == interval.fork and _whole(band)
    )


def _whole(band: dict[str, Any]) -> bool:
    return bool(band["steps"]) and not any(None in band[name] for name in ("low", "median", "high"))


def _fan(
    view: StudyView, known: dict[int, ForkView], decision: DecisionView, interval: Interval, band: dict[str, Any]
) -> Fan:
    fork, steps = known[interval.fork], tuple(int(step) for step in band["steps"])
    judged = _at_weights(view, band.get("weights") or _old_weights(view, steps[-1]))
    at, values = finite(fork.steps, column(judged, fork))
    first, last = bisect_right(at, interval.start), bisect_right(at, steps[-1])
    before = None if view.tasks else anchor(judged, known, fork, interval.start)
    start_value = None if before is None else before[1]
    low, median, high = (tuple(float(v) for v in band[name]) for name in ("low", "median", "high"))
    seen = at[first:last], values[first:last]
    return Fan(decision.round, interval.fork, judged.of, interval.start, start_value, steps, low, median, high, *seen)


def _old_weights(view: StudyView, step: int) -> str:
    """The weights that a forecast in a journal of format 1 is of: raw ones if it is of the end of the run."""
    to_the_end = view.settings.get("strategy", {}).get("judge_by") == "final" and step == view.steps
    return "raw" if to_the_end else view.of


def _at_weights(view: StudyView, weights: str) -> StudyView:
    """The same study, read at these weights."""
    strategy = {**view.settings.get("strategy", {}), "weights": weights}
    return view._replace(settings={**view.settings, "strategy": strategy})


def checks(fan: Fan) -> tuple[Check, ...]:
    """Each point of a fan with the nearest observation, where one was made near enough."""
    found = list[Check]()
    for step, low, median, high in zip(fan.steps, fan.low, fan.median, fan.high, strict=True):
        i = bisect_left(fan.seen_steps, step)
        near = [k for k in (i - 1, i) if 0 <= k < len(fan.seen_steps)]
        if not near:
            continue
        k = min(near, key=lambda k: abs(fan.seen_steps[k] - step))
        if abs(fan.seen_steps[k] - step) <= _spacing(fan):
            seen = fan.seen[k]
            found.append(Check(fan.round, fan.fork, step, low, median, high, seen, level(seen, low, median, high)))
    return tuple(found)


def _spacing(fan: Fan) -> float:
    """Steps between observations: a point of a band farther from any than this was not reached."""
    at = (fan.start, *fan.seen_steps)
    return max((after - before for before, after in pairwise(at)), default=0)


def level(seen: float, low: float, median: float, high: float) -> float:
    """How far up a forecast a value lies, from 0 to 1.

    >>> [round(level(seen, 1.0, 2.0, 4.0), 3) for seen in (1.0, 2.0, 3.0, 4.0)]
    [0.05, 0.5, 0.795, 0.95]
    """
    width = high - median if seen > median else median - low
    if width <= 0:
        return 0.5 if seen == median else float(seen > median)
    return 0.5 * (1 + erf(TAIL * (seen - median) / width / sqrt(2)))


def coverage(found: tuple[Check, ...]) -> Coverage | None:
    """How many observations each journaled quantile and the band hold; None where nothing can be said."""
    if not found:
        return None
    n = len(found)
    ends = (
        (LOW, sum(c.seen <= c.low for c in found) / n),
        (0.5, sum(c.seen <= c.median for c in found) / n),
        (HIGH, sum(c.seen <= c.high for c in found) / n),
    )
    return Coverage(n, sum(c.inside for c in found) / n, ends)
