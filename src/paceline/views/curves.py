"""The runs of a study as lines to draw: values and rates of each fork, from the point at which it was cloned.

The lines of long studies are thinned, so that a figure stays light. Each stretch keeps its lowest and its highest
value, so that no spike is lost.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from paceline.shapes import Constant
from paceline.traces import Schedule
from paceline.views.data import ForkView, State, StudyView

MAX_FORKS = 1_000
"""A figure shows at most so many forks."""
MAX_POINTS, MIN_LINE_POINTS, MAX_RUN_POINTS = 40_000, 20, 2_000
"""Points of all lines of a figure together, the least that one line gets, and the most of one whole run."""
EVEN_RATE_POINTS, EARLY_RATE_POINTS = 80, 40
"""Points on the curve of a rate that changes at every step: evenly spaced ones, and more of them early in the run."""


class Curve(NamedTuple):
    """A line of values and a line of rates, which jumps where the rate changes."""

    fork: int
    task: str
    state: State
    steps: tuple[int, ...]
    values: tuple[float, ...]
    rate_steps: tuple[float, ...]
    rates: tuple[float, ...]


class CloneStart(NamedTuple):
    """The start of a clone: its step, the last value of its parent up to there, and its first rate."""

    fork: int
    parent: int
    step: int
    value: float
    rate: float


def forks_by_number(view: StudyView) -> dict[int, ForkView]:
    """All forks of a study."""
    return {fork.fork: fork for fork in view.forks}


def fork_values(view: StudyView, fork: ForkView, weights: str | None = None) -> tuple[float, ...]:
    """What a fork observed itself, of `weights`, or of the weights that decide; of others if these are missing."""
    return _column(fork.values, weights or view.weights)


def shown_forks(view: StudyView) -> tuple[ForkView, ...]:
    """All forks of a study; of a long study the best ones and those that started last."""
    if len(view.forks) <= MAX_FORKS:
        return view.forks
    best = {run.fork for run in view.best_runs.values()} | ({view.best.fork} if view.best is not None else set[int]())
    others = sorted((fork for fork in view.forks if fork.fork not in best), key=lambda fork: (fork.start, fork.fork))
    latest = {fork.fork for fork in others[-MAX_FORKS:]}
    return tuple(sorted((f for f in view.forks if f.fork in best | latest), key=lambda fork: fork.fork))


def curves(view: StudyView, weights: str | None = None) -> tuple[Curve, ...]:
    """One curve for each shown fork that made a step.

    Args:
        view: the study.
        weights: "raw" or "averaged"; by default the weights whose value decides.
    """
    forks, shown = forks_by_number(view), shown_forks(view)
    max_points = max(MIN_LINE_POINTS, MAX_POINTS // max(len(shown), 1))
    return tuple(_curve(view, forks, fork, max_points, weights) for fork in shown if fork.step > fork.start)


def best_curve(view: StudyView, weights: str | None = None) -> Curve | None:
    """The whole run of the fork that won, or that leads; None before any fork has a value."""
    return None if view.best is None else whole_curve(view, view.best, weights)


def whole_curve(view: StudyView, fork: ForkView, weights: str | None = None) -> Curve:
    """The run of a fork from step 0, so through the forks that it descends from."""
    steps, columns = view.whole_run(fork.fork)
    steps, values = thin(*finite_points(steps, _column(columns, weights or view.weights)), max_points=MAX_RUN_POINTS)
    return Curve(fork.fork, fork.task, fork.state, steps, values, *rate_line(fork.schedule, 0, fork.step))


def best_values(view: StudyView) -> list[float]:
    """The values of the best run, or of the best run of each task: an axis must have room for these."""
    best = view.best
    forks = [run.fork for run in view.best_runs.values()] if view.tasks else [best.fork] if best is not None else []
    runs = (_column(view.whole_run(fork)[1], view.weights) for fork in forks)
    return [value for values in runs for value in values if isfinite(value)]


def clone_starts(view: StudyView) -> tuple[CloneStart, ...]:
    """The start of each shown clone whose parent has observed a value."""
    forks, starts = forks_by_number(view), list[CloneStart]()
    for fork in shown_forks(view):
        if fork.parent is None:
            continue
        observation = last_observation(view, forks, fork, fork.start)
        if observation is not None:
            rate = float(fork.schedule(fork.start))
            starts.append(CloneStart(fork.fork, fork.parent, fork.start, observation[1], rate))
    return tuple(starts)


def last_observation(
    view: StudyView, forks: Mapping[int, ForkView], fork: ForkView, step: int, weights: str | None = None
) -> tuple[int, float] | None:
    """Step and value of the last finite observation along the run of a fork, up to `step`; None if there is none."""
    ancestor: ForkView | None = fork
    while ancestor is not None:
        values = fork_values(view, ancestor, weights)
        for i in range(min(bisect_right(ancestor.steps, step), len(values)) - 1, -1, -1):
            if isfinite(values[i]):
                return ancestor.steps[i], values[i]
        step = min(step, ancestor.start)
        ancestor = forks[ancestor.parent] if ancestor.parent is not None else None
    return None


def finite_points(steps: Sequence[int], values: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The observations whose value is a finite number."""
    points = [(step, value) for step, value in zip(steps, values, strict=False) if isfinite(value)]
    return tuple(step for step, _ in points), tuple(value for _, value in points)


def thin(
    steps: Sequence[int], values: Sequence[float], *, max_points: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """About `max_points` points at most: the first, the last, and the lowest and highest of equal stretches.

    >>> thin(range(9), [0, 0, 9, 0, 0, 0, 0, -9, 0], max_points=6)
    ((0, 2, 5, 7, 8), (0, 9, 0, -9, 0))
    """
    if len(steps) <= max_points:
        return tuple(steps), tuple(values)
    column, chosen = np.asarray(values, dtype=float), {0, len(steps) - 1}
    for stretch in np.array_split(np.arange(len(steps)), max(max_points // 2 - 1, 1)):
        chosen |= {int(stretch[column[stretch].argmin()]), int(stretch[column[stretch].argmax()])}
    order = sorted(chosen)
    return tuple(steps[i] for i in order), tuple(values[i] for i in order)


def rate_line(schedule: Schedule, start: int, stop: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Steps and rates from `start` to `stop`, with a corner on both sides of each jump.

    A constant base needs no other points. A base that changes at every step gets a grid of them.
    """
    if stop <= start:
        return (), ()
    changes = [int(point) for point in schedule.change_points[1:-1] if start < point < stop]
    grid = {start, *changes}
    if not isinstance(schedule.base, Constant):
        grid |= set(_rate_grid(start, stop))
    # pairs of the step to draw at and the step whose rate is drawn: before a jump that is the step before
    points = [(float(step), float(step)) for step in grid]
    points += [(float(change), change - 1.0) for change in changes] + [(float(stop), stop - 1.0)]
    points += [(float(start), start - 1.0)] if start > 0 else []  # a clone starts at the rate of its parent
    points.sort()
    rates: np.ndarray = schedule(np.array([rate_step for _, rate_step in points]))
    return tuple(step for step, _ in points), tuple(float(rate) for rate in rates)


def _rate_grid(start: int, stop: int) -> list[int]:
    """Steps at which to draw a base that changes at every step: it often changes most early in the run."""
    even = np.linspace(start, stop - 1, min(stop - start, EVEN_RATE_POINTS))
    early = np.geomspace(max(start, 1), max(stop - 1, 1), EARLY_RATE_POINTS)
    return [int(step) for step in np.unique(np.concatenate([even, early]).round()) if start <= step < stop]


def _column(columns: Mapping[str, tuple[float, ...]], weights: str) -> tuple[float, ...]:
    return columns.get(weights, next(iter(columns.values()), ()))


def _curve(
    view: StudyView, forks: Mapping[int, ForkView], fork: ForkView, max_points: int, weights: str | None
) -> Curve:
    steps, values = finite_points(fork.steps, fork_values(view, fork, weights))
    steps, values = thin(steps, values, max_points=max_points)
    if fork.parent is not None:
        observation = last_observation(view, forks, forks[fork.parent], fork.start, weights)
        if observation is not None:
            steps, values = (observation[0], *steps), (observation[1], *values)
    return Curve(fork.fork, fork.task, fork.state, steps, values, *rate_line(fork.schedule, fork.start, fork.step))
