"""What the model of a decision predicts over values and rates: its latent functions and the chance of a failure."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from paceline.views.curves import forks_by_number, last_observation
from paceline.views.data import DecisionView, StudyView

Row = tuple[float | None, ...]
Grid = tuple[Row, ...]
"""One row per value, one column per rate; None for a number that was not finite."""


class RateChoice(NamedTuple):
    """The rate that a decision gave to a fork, and the value of the fork at that time."""

    fork: int
    value: float
    rate: float


class Latent(NamedTuple):
    """Mean and standard deviation of a latent function."""

    mean: Grid
    deviation: Grid


class Surface(NamedTuple):
    """The model of a decision over a grid; older journals hold no `p_fail`."""

    round: int
    step: int
    values: tuple[float, ...]
    rates: tuple[float, ...]
    latents: tuple[Latent, ...]
    p_fail: Grid | None
    choices: tuple[RateChoice, ...]


class FailureLine(NamedTuple):
    """P(fail) over the candidate rates of a decision, at the value its clones start from."""

    round: int
    step: int
    rates: tuple[float, ...]
    probabilities: tuple[float, ...]
    choices: tuple[RateChoice, ...]


def surfaces(view: StudyView) -> tuple[Surface, ...]:
    """The surface of each decision that has one."""
    return tuple(
        _surface(view, decision, decision.details["surface"])
        for decision in view.decisions
        if "surface" in decision.details
    )


def failure_lines(view: StudyView) -> tuple[FailureLine, ...]:
    """P(fail) of each decision that has it. The first clone is enough: clones of one decision have the same parent."""
    return tuple(
        FailureLine(
            decision.round,
            decision.step,
            _numbers(data["rates"]),
            _numbers(data["probability"]),
            rate_choices(view, decision),
        )
        for decision in view.decisions
        for data in decision.details.get("p_fail", [])[:1]
    )


def rate_choices(view: StudyView, decision: DecisionView) -> tuple[RateChoice, ...]:
    """The rates that a decision gave to forks that have observed a value."""
    forks, choices = forks_by_number(view), list[RateChoice]()
    for interval in decision.intervals:
        observation = last_observation(view, forks, forks[interval.fork], interval.start)
        if observation is not None:
            choices.append(RateChoice(interval.fork, observation[1], interval.multiplier))
    return tuple(choices)


def _surface(view: StudyView, decision: DecisionView, data: Mapping[str, Any]) -> Surface:
    return Surface(
        round=decision.round,
        step=decision.step,
        values=_numbers(data["values"]),
        rates=_numbers(data["rates"]),
        latents=tuple(Latent(_grid(latent["mean"]), _grid(latent["deviation"])) for latent in data["latents"]),
        p_fail=_grid(data["p_fail"]) if "p_fail" in data else None,
        choices=rate_choices(view, decision),
    )


def _numbers(row: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(number) for number in row)


def _grid(rows: Sequence[Sequence[Any]]) -> Grid:
    return tuple(tuple(_finite_or_none(number) for number in row) for row in rows)


def _finite_or_none(number: Any) -> float | None:
    return float(number) if number is not None and isfinite(float(number)) else None
