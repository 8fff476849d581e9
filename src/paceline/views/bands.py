"""Forecasts beside what was then observed. Each forecast is the one that the journal holds, and is never fitted again.

A forecast is a median with the 5 % and 95 % quantiles of the values to be observed. A check compares one point of it
with the observation that followed, and gives the level of that observation in its forecast. Levels are exact at the
three quantiles. Anywhere else they come from a normal distribution fitted to the nearer side.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import erf, sqrt
from typing import Any, NamedTuple

from paceline.study import Interval
from paceline.views.curves import finite_points, fork_values, forks_by_number, last_observation
from paceline.views.data import DecisionView, ForkView, StudyView
from paceline.views.projection import forecast_weights

LOW, HIGH = 0.05, 0.95
NORMAL_95 = 1.6448536269514722
"""The 95 % quantile of a standard normal distribution."""


class ForecastBand(NamedTuple):
    """A forecast of a fork, of raw or averaged weights, from the step it stood at, and the observations after it."""

    round: int
    fork: int
    weights: str
    start: int
    start_value: float | None
    steps: tuple[int, ...]
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]
    observed_steps: tuple[int, ...]
    observed_values: tuple[float, ...]


class Check(NamedTuple):
    """One point of a forecast, the value observed nearest to its step, and the level of that value in the forecast."""

    round: int
    fork: int
    step: int
    low: float
    median: float
    high: float
    value: float
    level: float

    @property
    def inside(self) -> bool:
        """Whether the value lies in the 90 % band."""
        return self.low <= self.value <= self.high


class Coverage(NamedTuple):
    """Shares of the checks: `inside` the 90 % band, and `below` each quantile of the journal."""

    checks: int
    inside: float
    below: tuple[tuple[float, float], ...]


def forecast_bands(view: StudyView) -> tuple[ForecastBand, ...]:
    """All forecasts of a study, in the order they were made."""
    forks = forks_by_number(view)
    return tuple(
        _forecast_band(view, forks, decision, interval, forecast)
        for decision in view.decisions
        for interval in decision.intervals
        for forecast in decision.details.get("forecast", [])
        if int(forecast["fork"]) == interval.fork and _is_complete(forecast)
    )


def _is_complete(forecast: Mapping[str, Any]) -> bool:
    return bool(forecast["steps"]) and not any(None in forecast[name] for name in ("low", "median", "high"))


def _forecast_band(
    view: StudyView,
    forks: Mapping[int, ForkView],
    decision: DecisionView,
    interval: Interval,
    forecast: Mapping[str, Any],
) -> ForecastBand:
    fork, steps = forks[interval.fork], tuple(int(step) for step in forecast["steps"])
    weights = forecast_weights(forecast, view.settings)
    observed_steps, observed_values = finite_points(fork.steps, fork_values(view, fork, weights))
    after = slice(bisect_right(observed_steps, interval.start), bisect_right(observed_steps, steps[-1]))
    before = None if view.tasks else last_observation(view, forks, fork, interval.start, weights)
    low, median, high = (tuple(float(value) for value in forecast[name]) for name in ("low", "median", "high"))
    return ForecastBand(
        round=decision.round,
        fork=interval.fork,
        weights=weights,
        start=interval.start,
        start_value=None if before is None else before[1],
        steps=steps,
        low=low,
        median=median,
        high=high,
        observed_steps=observed_steps[after],
        observed_values=observed_values[after],
    )


def checks(band: ForecastBand) -> tuple[Check, ...]:
    """A check of each point of a forecast that has an observation near enough."""
    results, spacing = list[Check](), _spacing(band)
    for step, low, median, high in zip(band.steps, band.low, band.median, band.high, strict=True):
        i = bisect_left(band.observed_steps, step)
        neighbours = [k for k in (i - 1, i) if 0 <= k < len(band.observed_steps)]
        distance, k = min(((abs(band.observed_steps[k] - step), k) for k in neighbours), default=(spacing + 1, -1))
        if distance <= spacing:
            value = band.observed_values[k]
            level = forecast_level(value, low, median, high)
            results.append(Check(band.round, band.fork, step, low, median, high, value, level))
    return tuple(results)


def _spacing(band: ForecastBand) -> int:
    """The most steps between two observations. The fork did not reach a point further from any observation."""
    return max((after - before for before, after in pairwise((band.start, *band.observed_steps))), default=0)


def forecast_level(value: float, low: float, median: float, high: float) -> float:
    """The share of a forecast below a value, from 0 to 1.

    >>> [round(forecast_level(value, 1.0, 2.0, 4.0), 3) for value in (1.0, 2.0, 3.0, 4.0)]
    [0.05, 0.5, 0.795, 0.95]
    """
    width = high - median if value > median else median - low
    if width <= 0:
        return 0.5 if value == median else float(value > median)
    return 0.5 * (1 + erf(NORMAL_95 * (value - median) / width / sqrt(2)))


def coverage(all_checks: Sequence[Check]) -> Coverage | None:
    """How many checks lie inside the band and below each quantile; None without any check."""
    if not all_checks:
        return None
    below = (
        (LOW, _share([check.value <= check.low for check in all_checks])),
        (0.5, _share([check.value <= check.median for check in all_checks])),
        (HIGH, _share([check.value <= check.high for check in all_checks])),
    )
    return Coverage(len(all_checks), _share([check.inside for check in all_checks]), below)


def _share(answers: Sequence[bool]) -> float:
    return sum(answers) / len(answers)
