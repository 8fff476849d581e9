"""What the model of a decision said over values and rates: its latent functions, and how likely an interval fails."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from paceline.views.curves import anchor
from paceline.views.data import DecisionView, StudyView

Row = tuple[float | None, ...]
Grid = tuple[Row, ...]


class Chosen(NamedTuple):
    """A rate that a decision gave to a fork, and the value the fork stood at."""

    fork: int
    value: float
    rate: float


class Latent(NamedTuple):
    """Mean and deviation of a latent function, one row per value, one column per rate."""

    mean: Grid
    deviation: Grid


class Surface(NamedTuple):
    """The model of a decision over a grid; `p_fail` where it was journaled."""

    round: int
    step: int
    values: tuple[float, ...]
    rates: tuple[float, ...]
    latents: tuple[Latent, ...]
    p_fail: Grid | None
    chosen: tuple[Chosen, ...]


class FailureLine(NamedTuple):
    """P(fail) over the candidate rates of a decision, at the value its clones began at."""

    round: int
    step: int
    rates: tuple[float, ...]
    probability: tuple[float, ...]
    chosen: tuple[Chosen, ...]


def surfaces(view: StudyView) -> tuple[Surface, ...]:
    """One for each decision that carries a grid."""
    return tuple(_surface(view, d, d.details["surface"]) for d in view.decisions if "surface" in d.details)


def failure_lines(view: StudyView) -> tuple[FailureLine, ...]:
    """One for each decision that carries P(fail), of its first clone: clones of one decision have one parent."""
    return tuple(
        FailureLine(d.round, d.step, _numbers(p["rates"]), _numbers(p["probability"]), chosen(view, d))
        for d in view.decisions
        for p in d.details.get("p_fail", [])[:1]
    )


def chosen(view: StudyView, decision: DecisionView) -> tuple[Chosen, ...]:
    """The rates that a decision gave out, at the values they were given for."""
    known = {fork.fork: fork for fork in view.forks}
    found = list[Chosen]()
    for interval in decision.proposed:
        at = anchor(view, known, known[interval.fork], interval.start)
        if at is not None:
            found.append(Chosen(interval.fork, at[1], interval.multiplier))
    return tuple(found)


def _surface(view: StudyView, decision: DecisionView, data: dict[str, Any]) -> Surface:
    latents = tuple(Latent(_grid(latent["mean"]), _grid(latent["deviation"])) for latent in data["latents"])
    axes = _numbers(data["values"]), _numbers(data["rates"])
    p_fail = _grid(data["p_fail"]) if "p_fail" in data else None
    return Surface(decision.round, decision.step, *axes, latents, p_fail, chosen(view, decision))


def _numbers(row: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(x) for x in row)


def _grid(rows: Sequence[Sequence[Any]]) -> Grid:
    """Numbers, and None where one was not finite."""
    return tuple(tuple(None if x is None or not isfinite(float(x)) else float(x) for x in row) for row in rows)
