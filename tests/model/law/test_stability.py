"""Which runs diverged, and at which rates runs were stable."""

import numpy as np
import pytest

from paceline import InputError, LearningRateRange, Schedule, Trace
from paceline.model.law.stability import (
    has_diverged,
    highest_stable_rate,
    shortest_warmup,
    stable_range,
    stable_runs,
    warmup_share,
    without_diverged,
)
from paceline.shapes import WarmupStableDecay

CONSTANT = Schedule.constant(0.1, 1000)


def run(rate: float, last: int, end: float, **fields) -> Trace:
    """A run at a constant rate that goes from 2 to `end`."""
    steps = np.linspace(10, last, 10).astype(int)
    return Trace(steps, np.linspace(2.0, end, 10), Schedule.constant(rate, 1000), **fields)


GOOD, SHORT, WORSE = run(0.1, 1000, 1.0), run(0.5, 200, 1.0), run(0.9, 1000, 3.0)
FAILED = run(0.7, 1000, 1.0, failed=True)


@pytest.mark.parametrize(
    ("values", "diverged"),
    [([3.0, 2.0, 1.0], False), ([3.0, 4.0, 7.0], True), ([3.0, 40.0, 1.0], True), ([3.0, 4.0, 5.0], False)],
)
def test_runs_that_end_far_above_their_first_loss_have_diverged(values: list[float], diverged: bool) -> None:
    assert has_diverged(Trace(np.arange(10, 31, 10), np.array(values), CONSTANT)) is diverged


def test_runs_that_diverged_are_left_out_unless_all_did() -> None:
    diverged = run(0.5, 1000, 9.0)
    assert without_diverged([GOOD, diverged]) == [GOOD]
    assert without_diverged([diverged]) == [diverged]


def test_stable_runs_lasted_and_ended_no_worse_than_they_began() -> None:
    assert stable_runs([GOOD, SHORT, WORSE, FAILED]) == [GOOD]


def test_rates_are_stable_up_to_those_of_stable_runs() -> None:
    assert highest_stable_rate([GOOD, SHORT, WORSE]) == pytest.approx(0.1)
    assert highest_stable_rate([WORSE, FAILED]) == pytest.approx(0.07)  # a decade below the lowest peak
    assert stable_range([GOOD], (1e-3, 10.0)).high == pytest.approx(0.125)
    assert stable_range([GOOD], (1e-3, 0.05)) == LearningRateRange(1e-3, 0.05)
    with pytest.raises(InputError, match=r"rate to plan with is 1, these runs worked at rates up to 0\.1: lower"):
        stable_range([GOOD], (1.0, 10.0))


def test_the_shortest_warmup_is_that_of_stable_runs_at_high_rates() -> None:
    slow = Schedule.of(WarmupStableDecay(warmup=0.2), 0.1, 1000)
    warm = Trace(GOOD.steps, GOOD.values, slow)
    assert warmup_share(slow, 1000) == pytest.approx(0.18, abs=0.002)
    assert shortest_warmup([warm]) == pytest.approx(0.18, abs=0.002)
    assert shortest_warmup([warm, GOOD]) == 0.0
    assert shortest_warmup([warm, run(0.01, 1000, 1.0)]) == pytest.approx(0.18, abs=0.002)  # too low to count
    assert shortest_warmup([FAILED]) == 0.0
