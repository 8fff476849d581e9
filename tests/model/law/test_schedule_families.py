"""Families of schedules: what is searched is what the schedule does."""

import numpy as np
import pytest
import torch

from paceline import InputError, LearningRateRange, Schedule, Trace
from paceline.model.law.schedule_families import DecayShapes, IntervalRates, ScheduleFamily, schedule_family
from paceline.model.linalg import tensor
from paceline.shapes import HOLD_THEN_DECAY, Constant, Linear, WarmupStableDecay

BOUNDS = LearningRateRange(1e-3, 0.1)
POINTS = np.array([0, 250, 500, 750, 1000])
RUN = Trace(np.array([10, 500]), np.array([3.0, 2.0]), Schedule.of("linear", 0.05, 1000))


FAMILIES: dict[str, ScheduleFamily] = {
    "shape": DecayShapes(BOUNDS, 1000),
    "multipliers": IntervalRates(BOUNDS, 1000, HOLD_THEN_DECAY, POINTS, None),
    "free": IntervalRates(BOUNDS, 1000, Constant(), POINTS, None),
    "continued": IntervalRates(BOUNDS, 1000, Constant(), np.array([500, 700, 1000]), RUN.schedule),
}


@pytest.mark.parametrize("name", list(FAMILIES))
def test_differentiable_rates_are_those_of_the_schedule(name: str) -> None:
    family = FAMILIES[name]
    at = np.arange(500, 1000) if name == "continued" else np.arange(1000)
    for x in family.starts():
        log_rates = family.log_rates(tensor(np.array(x)), tensor(at.astype(float)))
        schedule = family.schedule(np.array(x))
        np.testing.assert_allclose(torch.exp(log_rates).numpy(), schedule(at), rtol=0.01)
    assert len(FAMILIES["shape"].starts()[0]) == 4


def test_the_past_of_a_continued_run_is_kept() -> None:
    schedule = FAMILIES["continued"].schedule(np.array([0.5, 0.2]))
    np.testing.assert_allclose(schedule(np.arange(500)), RUN.schedule(np.arange(500)), rtol=0.01)
    assert schedule.steps == 1000


def test_families_go_by_name() -> None:
    def family(name: str, start: Trace | None = None, warmup: float = 0.0) -> ScheduleFamily:
        return schedule_family(name, BOUNDS, 1000, start, 4, warmup)

    shape, free, multipliers = family("shape", warmup=0.1), family("free", warmup=0.1), family("multipliers", RUN)
    assert isinstance(shape, DecayShapes)
    assert shape.warmup == 0.1
    assert isinstance(free, IntervalRates)
    assert free.base == WarmupStableDecay(warmup=0.1, decay=0.0)
    assert isinstance(multipliers, IntervalRates)
    assert multipliers.base == Linear()
    assert multipliers.points.tolist() == [500, 625, 750, 875, 1000]
    assert isinstance(family("multipliers"), IntervalRates)


@pytest.mark.parametrize(
    ("name", "start", "intervals", "message"),
    [
        ("nonsense", None, 4, 'family must be "shape", "multipliers" or "free", got \'nonsense\': pick one'),
        ("shape", RUN, 4, 'plans a new run, got a run to continue: use "multipliers"'),
        ("free", None, 0, r"intervals must lie in 1..1000, got 0: one rate for each"),
        ("free", RUN, 600, r"intervals must lie in 1..500, got 600"),
    ],
)
def test_wrong_arguments_say_what_to_do(name: str, start: Trace | None, intervals: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        schedule_family(name, BOUNDS, 1000, start, intervals, 0.0)
