"""Turns for the worse are told from noise, and from the rises of healthy runs at a high rate."""

import numpy as np
import pytest

from paceline.shapes import Linear
from paceline.study.turning import TurnRule, turned_at
from paceline.traces import Schedule

STEPS = 1000
HELD, FALLING = Schedule([0.1], [0, STEPS], STEPS), Schedule([0.1], [0, STEPS], STEPS, Linear())
AT = np.arange(0, 601, 10)


def losses(rise: float, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Falls by 1 from 2 to step 300; after that it rises by so much until step 600."""
    falling = 2.0 - np.minimum(AT, 300) / 300
    rising = rise * np.maximum(AT - 300, 0) / 300
    return falling + rising + noise * np.random.default_rng(seed).normal(size=len(AT))


@pytest.mark.parametrize(
    ("schedule", "rise", "has_turned"),
    [(HELD, 0.5, True), (HELD, 0.2, False), (FALLING, 0.05, True), (FALLING, 0.005, False), (FALLING, -0.2, False)],
)
def test_a_rise_counts_sooner_while_the_rate_falls(schedule: Schedule, rise: float, has_turned: bool) -> None:
    assert turned_at(AT, losses(rise), schedule) == (30 if has_turned else None)


def test_noise_is_not_a_turn() -> None:
    turns = [turned_at(AT, losses(0.0, 0.1, seed), FALLING) for seed in range(200)]
    assert sum(turn is not None for turn in turns) <= 4


def test_a_rise_has_to_last() -> None:
    at = AT[AT <= 350]
    assert turned_at(at, losses(3.0)[: len(at)], FALLING) is None


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_rule_sees_what_was_observed_before_the_interval(sign: float) -> None:
    values = -sign * losses(0.5)
    rule = TurnRule(sign, "raw", AT[:40], values[:40])
    failure = rule.failure(FALLING, AT[40:].tolist(), {"raw": values[40:].tolist()})
    assert failure is not None
    assert (failure.kind, failure.step, failure.is_turn) == ("turned", 300, True)
    assert rule.failure(FALLING, AT[40:41].tolist(), {"raw": values[40:41].tolist()}) is None
    alone = TurnRule(sign, "averaged", AT[:0], values[:0])  # raw values count if there are no averaged ones
    assert alone.failure(FALLING, AT.tolist(), {"raw": values.tolist()}) == failure
