"""Which fork was cloned from which: bars for the intervals of forks in as few rows as possible, and lines for clones.

Decisions are evenly spaced here. Most decisions are made early in a run, and would overlap on an axis of steps. The
runs of a family have a row each, grouped by task.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from paceline.views.curves import shown_forks
from paceline.views.data import ForkView, State, StudyView

TO_THE_END = 10**18
"""A step after every run."""


class Bar(NamedTuple):
    """A fork at one multiplier of its base, in a row, between the borders number `first` and `last`.

    `on_best_path` says whether the best fork is this one or descends from this bar.
    """

    fork: int
    task: str
    row: int
    first: int
    last: int
    start: int
    stop: int
    multiplier: float
    state: State
    reason: str
    on_best_path: bool


class Branch(NamedTuple):
    """A clone, as a line from the row of its parent to its own row at a border."""

    fork: int
    parent: int
    border: int
    from_row: int
    to_row: int
    on_best_path: bool


class Lineage(NamedTuple):
    """The forks of a study.

    `borders` are the steps between which bars lie, `row_names` the names of the rows, and `omitted_forks` counts the
    forks of a long study that are not shown.
    """

    borders: tuple[int, ...]
    row_names: tuple[str, ...]
    bars: tuple[Bar, ...]
    branches: tuple[Branch, ...]
    omitted_forks: int


class _Segment(NamedTuple):
    """Part of a fork at one multiplier."""

    start: int
    stop: int
    multiplier: float


def lineage(view: StudyView) -> Lineage | None:
    """The forks of a study in rows; None if it has none."""
    if not view.forks:
        return None
    forks = shown_forks(view)
    segments = {fork.fork: _segments(fork) for fork in forks}
    borders = _borders(view, segments)
    border_at = {step: i for i, step in enumerate(borders)}
    rows = _rows_of_runs(view, forks) if view.tasks else _rows_of_forks(forks, segments)
    best_until = _best_until(view)
    bars, branches = list[Bar](), list[Branch]()
    for fork in forks:
        row, until = rows[fork.fork], best_until.get(fork.fork, -1)
        for start, stop, multiplier in segments[fork.fork]:
            span = border_at[start], border_at[stop], start, stop
            look = multiplier, fork.state, fork.reason, start < until
            bars.append(Bar(fork.fork, fork.task, row, *span, *look))
        if fork.parent in rows:
            ends = border_at[fork.start], rows[fork.parent], row
            branches.append(Branch(fork.fork, fork.parent, *ends, until >= 0))
    by_row = sorted(forks, key=lambda fork: rows[fork.fork])
    names = [f"{fork.task}, run {fork.fork}" for fork in by_row] if view.tasks else [""] * (max(rows.values()) + 1)
    return Lineage(borders, tuple(names), tuple(bars), tuple(branches), len(view.forks) - len(forks))


def _borders(view: StudyView, segments: Mapping[int, Sequence[_Segment]]) -> tuple[int, ...]:
    """All steps at which a fork starts, stops or changes its rate, or was meant to."""
    planned = [(p.start, p.stop) for d in view.decisions for p in d.intervals if p.fork in segments]
    actual = [(segment.start, segment.stop) for own in segments.values() for segment in own]
    return tuple(sorted({step for ends in (*planned, *actual) for step in ends}))


def _segments(fork: ForkView) -> list[_Segment]:
    """The segments of a fork, with the interval that it is running now."""
    reached = max(fork.step, fork.start + 1) if fork.stop is None else fork.stop
    # a fork that failed inside an interval is drawn to the end of it
    stop = min((int(point) for point in fork.schedule.change_points if point >= reached), default=reached)
    multiplier = fork.schedule.multiplier
    inner = (int(point) for point in fork.schedule.change_points[:-1] if fork.start < point < stop)
    changes = [point for point in inner if multiplier(point) != multiplier(point - 1)]
    return [_Segment(start, end, float(multiplier(start))) for start, end in pairwise([fork.start, *changes, stop])]


def _rows_of_forks(forks: Sequence[ForkView], segments: Mapping[int, Sequence[_Segment]]) -> dict[int, int]:
    """The row of each fork: that of its parent if it is free, else the first free row."""
    free_from, rows = list[int](), dict[int, int]()
    for fork in sorted(forks, key=lambda fork: (fork.start, fork.fork)):
        free = [row for row, step in enumerate(free_from) if step <= fork.start]
        parent_row = rows.get(fork.parent, -1) if fork.parent is not None else -1
        row = parent_row if parent_row in free else free[0] if free else len(free_from)
        if row == len(free_from):
            free_from.append(0)
        free_from[row], rows[fork.fork] = segments[fork.fork][-1].stop, row
    return rows


def _rows_of_runs(view: StudyView, forks: Sequence[ForkView]) -> dict[int, int]:
    """A row for each run, grouped by task."""
    task_numbers = {task: i for i, task in enumerate(view.tasks)}
    runs = sorted(forks, key=lambda fork: (task_numbers[fork.task], fork.fork))
    return {fork.fork: row for row, fork in enumerate(runs)}


def _best_until(view: StudyView) -> dict[int, int]:
    """Each fork on the path to the best one, with the step at which the path leaves it."""
    if view.tasks:
        return {run.fork: view.steps for run in view.best_runs.values()}
    if view.best is None:
        return {}
    path = view.lineage_of(view.best.fork)
    return {fork.fork: child.start for fork, child in pairwise(path)} | {path[-1].fork: TO_THE_END}
