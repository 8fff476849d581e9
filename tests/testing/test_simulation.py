"""The made-up loss, and the forks that fail in it."""

import numpy as np
import pytest

from paceline import Schedule
from paceline.shapes import Constant
from paceline.strategy import FixedSchedules
from paceline.study import Interval
from paceline.testing.simulation import OBSERVATIONS_PER_RUN, _losses, _observed_steps, run_simulation

BOUNDS = (1e-4, 1e-1)


def interval(rate: float, start: int = 0, stop: int = 400, task: int = 0) -> Interval:
    return Interval(0, None, start, stop, Schedule.constant(rate, 400), 1, task)


def final(rate: float, task: int = 0) -> float:
    return _losses(interval(rate, task=task), [400], BOUNDS)["raw"][-1]


def test_the_loss_falls_fastest_in_the_middle_of_the_bounds() -> None:
    middle = float(np.sqrt(BOUNDS[0] * BOUNDS[1]))
    assert final(middle) < final(middle * 3) < final(middle * 10)
    assert final(middle) < final(middle / 3) < final(middle / 10)
    assert final(middle, task=1) < final(middle, task=0)


def test_the_loss_depends_on_the_rates_so_far_and_not_on_the_intervals() -> None:
    whole = dict(zip([100, 200], _losses(interval(0.01, 0, 200), [100, 200], BOUNDS)["raw"], strict=True))
    assert _losses(interval(0.01, 100, 200), [200], BOUNDS)["raw"] == [whole[200]]


@pytest.mark.parametrize(("start", "stop", "steps"), [(0, 10, [5, 10]), (10, 13, [13]), (0, 1, [1])])
def test_an_interval_is_observed_at_its_end_too(start: int, stop: int, steps: list[int]) -> None:
    assert _observed_steps(interval(0.01, start, stop), 5 * OBSERVATIONS_PER_RUN) == steps


@pytest.mark.parametrize(("failing", "failed"), [("nothing", 0), ("high rates", 1), ("everything", 4)])
def test_forks_fail_as_asked(failing, failed: int) -> None:
    tuner = run_simulation(
        FixedSchedules((Constant(),), runs=4), lr=BOUNDS, steps=400, seed=0, tasks=(), failing=failing, most_rounds=99
    )
    assert sum(fork.failure is not None for fork in tuner.history.forks) == failed
    assert tuner.ask() is None


def test_it_can_be_stopped_after_some_rounds() -> None:
    strategy = FixedSchedules((Constant(),), runs=2, intervals=10)
    tuner = run_simulation(strategy, lr=BOUNDS, steps=400, seed=0, tasks=(), failing="nothing", most_rounds=3)
    assert tuner.history.round == 4
