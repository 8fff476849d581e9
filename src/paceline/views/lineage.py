"""Who came from whom: the stretches that forks ran, in as few rows as hold them, and the clones between the rows.

Decisions are evenly spaced: most are made early in a run, where steps would leave no room for them. Runs of a family
are a row each, by task, with the intervals of their schedules.
"""

from itertools import pairwise
from typing import NamedTuple

from paceline.views.curves import latest
from paceline.views.data import ForkView, State, StudyView


class Bar(NamedTuple):
    """A fork at one multiplier of its base, between two of the borders, in a row."""

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
    leads: bool


class Branch(NamedTuple):
    """A clone: from the row of its parent to its own, at a border."""

    fork: int
    parent: int
    border: int
    from_row: int
    to_row: int
    leads: bool


class Lineage(NamedTuple):
    """The forks of a study; `borders` are the steps between which bars lie, `rows` what each row is called,
    and `left_out` how many earlier forks of a long study are not in it.
    """

    borders: tuple[int, ...]
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    branches: tuple[Branch, ...]
    left_out: int


class _Stretch(NamedTuple):
    start: int
    stop: int
    multiplier: float


def lineage(view: StudyView) -> Lineage | None:
    """The forks of a study in rows; None where there are none."""
    if not view.forks:
        return None
    forks = latest(view)
    ran = {fork.fork: _stretches(fork) for fork in forks}
    asked = {step for d in view.decisions for s in d.proposed if s.fork in ran for step in (s.start, s.stop)}
    borders = tuple(sorted(asked | {step for fork in ran.values() for s in fork for step in (s.start, s.stop)}))
    at = {step: i for i, step in enumerate(borders)}
    rows = _rows_of_runs(view, forks) if view.tasks else _rows_of_forks(forks, ran)
    leads = _leading(view)
    bars, branches = list[Bar](), list[Branch]()
    for fork in forks:
        until = leads.get(fork.fork, -1)
        for s in ran[fork.fork]:
            where = rows[fork.fork], at[s.start], at[s.stop], s.start, s.stop
            bars.append(Bar(fork.fork, fork.task, *where, s.multiplier, fork.state, fork.reason, s.start < until))
        if fork.parent in rows:
            link = at[fork.start], rows[fork.parent], rows[fork.fork], until >= 0
            branches.append(Branch(fork.fork, fork.parent, *link))
    names = [f"{f.task}, run {f.fork}" for f in sorted(forks, key=lambda f: rows[f.fork])] if view.tasks else []
    return Lineage(
        borders,
        tuple(names) or ("",) * (max(rows.values()) + 1),
        tuple(bars),
        tuple(branches),
        len(view.forks) - len(forks),
    )


def _stretches(fork: ForkView) -> list[_Stretch]:
    """From change to change of its multiplier, over what it ran and what it is running now."""
    ran = max(fork.step, fork.start + 1) if fork.stop is None else fork.stop
    stop = min((int(p) for p in fork.schedule.change_points if p >= ran), default=ran)  # it may fail on the way there
    rate_at = fork.schedule.multiplier
    points = [
        int(p) for p in fork.schedule.change_points[:-1] if fork.start < p < stop and rate_at(p) != rate_at(p - 1)
    ]
    edges = [fork.start, *points, stop]
    rates = [float(rate_at(step)) for step in edges[:-1]]
    return [_Stretch(*ends) for ends in zip(edges, edges[1:], rates, strict=False)]


def _rows_of_forks(forks: tuple[ForkView, ...], ran: dict[int, list[_Stretch]]) -> dict[int, int]:
    """A row for each fork: its parent's where that is free, else the first free one."""
    free_from, rows = list[int](), dict[int, int]()
    for fork in sorted(forks, key=lambda f: (f.start, f.fork)):
        free = [row for row, step in enumerate(free_from) if step <= fork.start]
        own = rows.get(fork.parent, -1) if fork.parent is not None else -1
        row = own if own in free else free[0] if free else len(free_from)
        if row == len(free_from):
            free_from.append(0)
        free_from[row], rows[fork.fork] = ran[fork.fork][-1].stop, row
    return rows


def _rows_of_runs(view: StudyView, forks: tuple[ForkView, ...]) -> dict[int, int]:
    """A row for each run, those of a task together."""
    order = {task: i for i, task in enumerate(view.tasks)}
    runs = sorted(forks, key=lambda f: (order[f.task], f.fork))
    return {fork.fork: row for row, fork in enumerate(runs)}


def _leading(view: StudyView) -> dict[int, int]:
    """Forks on the way to the one that leads, and the step that they are on it until; the best runs of a family."""
    if view.tasks:
        return {run.fork: view.steps for run in view.best_runs.values()}
    if view.best is None:
        return {}
    line = view.line_of(view.best.fork)
    return {fork.fork: heir.start for fork, heir in pairwise(line)} | {line[-1].fork: 10**18}
