"""The runs of a study as lines to draw: what each fork observed, joined to where it was cloned, and its rates.

Long studies are thinned so that a figure stays light: the lowest and the highest value of each stretch are kept, so no
spike is lost.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from paceline.shapes import Constant
from paceline.traces import Schedule
from paceline.views.data import ForkView, State, StudyView

POINTS, FEWEST, FORKS = 40_000, 20, 1_000
"""Points of all lines of a figure together, those of one line at least, and the most forks that are drawn."""


class Curve(NamedTuple):
    """A fork's own part of its run, from the point it was cloned at; rates jump where they change."""

    fork: int
    task: str
    state: State
    steps: tuple[int, ...]
    values: tuple[float, ...]
    rate_steps: tuple[float, ...]
    rates: tuple[float, ...]


class Birth(NamedTuple):
    """Where a clone began: step, and what its parent had observed last by then."""

    fork: int
    parent: int
    step: int
    value: float
    rate: float


def column(view: StudyView, fork: ForkView) -> tuple[float, ...]:
    """What a fork observed of the weights that decide, or of the others where there are none."""
    return fork.values.get(view.of, next(iter(fork.values.values()), ()))


def latest(view: StudyView) -> tuple[ForkView, ...]:
    """The forks that are drawn: all of them, or in a long study the last ones to begin and the best."""
    if len(view.forks) <= FORKS:
        return view.forks
    best = {run.fork for run in view.best_runs.values()} | ({view.best.fork} if view.best is not None else set[int]())
    last = sorted((fork for fork in view.forks if fork.fork not in best), key=lambda f: (f.start, f.fork))[-FORKS:]
    return tuple(sorted([*last, *(fork for fork in view.forks if fork.fork in best)], key=lambda f: f.fork))


def curves(view: StudyView) -> tuple[Curve, ...]:
    """One line per fork that observed anything, in the order of their numbers; of the latest in a long study."""
    known, shown = {fork.fork: fork for fork in view.forks}, latest(view)
    most = max(FEWEST, POINTS // max(len(shown), 1))
    return tuple(_curve(view, known, fork, most) for fork in shown if fork.step > fork.start)


def best_curve(view: StudyView) -> Curve | None:
    """The whole run of the fork that won, or leads, through those it descends from."""
    return None if view.best is None else whole_curve(view, view.best)


def whole_curve(view: StudyView, fork: ForkView) -> Curve:
    """A fork's run from step 0."""
    steps, columns = view.whole_run(fork.fork)
    values = columns.get(view.of, next(iter(columns.values()), ()))
    at, seen = thinned(*finite(steps, values), most=2_000)
    return Curve(fork.fork, fork.task, fork.state, at, seen, *rate_line(fork.schedule, 0, fork.step))


def usual_values(view: StudyView) -> list[float]:
    """What the best fork, or the best runs of a family, observed: what an axis must hold, whatever others did."""
    best = (
        [run.fork for run in view.best_runs.values()] if view.tasks else [f.fork for f in (view.best,) if f is not None]
    )
    found = list[float]()
    for number in best:
        _, columns = view.whole_run(number)
        found += [v for v in columns.get(view.of, next(iter(columns.values()), ())) if isfinite(v)]
    return found


def births(view: StudyView) -> tuple[Birth, ...]:
    """Where each clone began."""
    known = {fork.fork: fork for fork in view.forks}
    found = list[Birth]()
    for fork in latest(view):
        if fork.parent is not None and (at := anchor(view, known, fork, fork.start)) is not None:
            found.append(Birth(fork.fork, fork.parent, fork.start, at[1], float(fork.schedule(fork.start))))
    return tuple(found)


def anchor(view: StudyView, known: dict[int, ForkView], fork: ForkView, step: int) -> tuple[int, float] | None:
    """Step and value of the last finite observation along a fork's run up to a step; None where there is none."""
    at: ForkView | None = fork
    while at is not None:
        values = column(view, at)
        for i in range(min(bisect_right(at.steps, step), len(values)) - 1, -1, -1):
            if isfinite(values[i]):
                return at.steps[i], values[i]
        step, at = min(step, at.start), known[at.parent] if at.parent is not None else None
    return None


def finite(steps: Sequence[int], values: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The observations that are numbers."""
    kept = [(step, value) for step, value in zip(steps, values, strict=False) if isfinite(value)]
    return tuple(step for step, _ in kept), tuple(value for _, value in kept)


def thinned(steps: Sequence[int], values: Sequence[float], *, most: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """At most about `most` points: first, last, and the lowest and highest of each of equal stretches.

    >>> thinned(range(9), [0, 0, 9, 0, 0, 0, 0, -9, 0], most=6)
    ((0, 2, 5, 7, 8), (0, 9, 0, -9, 0))
    """
    if len(steps) <= most:
        return tuple(steps), tuple(values)
    seen, kept = np.asarray(values, dtype=float), {0, len(steps) - 1}
    for part in np.array_split(np.arange(len(steps)), max(most // 2 - 1, 1)):
        kept |= {int(part[seen[part].argmin()]), int(part[seen[part].argmax()])}
    order = sorted(kept)
    return tuple(steps[i] for i in order), tuple(values[i] for i in order)


def rate_line(schedule: Schedule, start: int, stop: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Steps and rates from `start` to `stop`: a corner on either side of each change, a grid where a base bends."""
    if stop <= start:
        return (), ()
    changes = [int(p) for p in schedule.change_points[1:-1] if start < p < stop]
    bends = not isinstance(schedule.base, Constant)
    grid = {start, *changes} | (set[int](_spread(start, stop)) if bends else set[int]())
    points = [(float(s), float(s)) for s in grid]
    points += [(float(p), p - 1.0) for p in changes] + [(float(stop), stop - 1.0)]
    points += [(float(start), start - 1.0)] if start > 0 else []  # a clone leaves its parent's rate
    points.sort()
    rates: np.ndarray = schedule(np.array([read for _, read in points]))
    return tuple(at for at, _ in points), tuple(float(rate) for rate in rates)


def _spread(start: int, stop: int) -> list[int]:
    """Steps at which a base that bends is drawn: evenly spaced ones, and as many closer to the start of the run."""
    even = np.linspace(start, stop - 1, min(stop - start, 80))
    early = np.geomspace(max(start, 1), max(stop - 1, 1), 40)
    return [int(step) for step in np.unique(np.concatenate([even, early]).round()) if start <= step < stop]


def _curve(view: StudyView, known: dict[int, ForkView], fork: ForkView, most: int) -> Curve:
    steps, values = thinned(*finite(fork.steps, column(view, fork)), most=most)
    if fork.parent is not None and (at := anchor(view, known, known[fork.parent], fork.start)) is not None:
        steps, values = (at[0], *steps), (at[1], *values)
    rates = rate_line(fork.schedule, fork.start, fork.step)
    return Curve(fork.fork, fork.task, fork.state, steps, values, *rates)
