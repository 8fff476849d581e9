"""The strategy that is used if none is named."""

from paceline.errors import InputError
from paceline.strategy.base import Strategy
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.horizon_settings import HORIZON
from paceline.strategy.single_run import SingleRun


def default_strategy(cost: float) -> Strategy:
    """The default strategy for a cost in runs: one run below 1.375, where plans with forks begin; else `horizon`."""
    if not isinstance(cost, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"cost must be a number of runs, got {cost!r}: pass 2.3, or 1 for a single run")
    if cost < 1:
        raise InputError(f"cost must be at least 1, one run of all steps, got {cost}: lower `steps` to spend less")
    return SingleRun() if cost < HORIZON.forks_from_cost else Dynamic.horizon(cost=cost)
