"""Which rates fail, by the intervals of several tasks."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.model import StableRates

GRID = np.linspace(-3.0, 2.0, 101)


def rates_of(**tasks: tuple[list[float], list[float]]) -> StableRates:
    """Rates at which each task lasted, and at which it failed, as log10."""
    rows = [
        (rate, has_failed, task)
        for task, columns in tasks.items()
        for has_failed, column in zip((False, True), columns, strict=True)
        for rate in column
    ]
    rates, failed, names = zip(*rows, strict=True)
    return StableRates.fit(np.array(rates), np.array(failed), names)


def test_between_what_lasted_and_what_failed_the_risk_rises_evenly() -> None:
    stable = rates_of(a=([-2.0, -1.0], [0.0]))
    risk = stable.probability(np.array([-2.0, -1.2, -0.75, -0.5, -0.25, 0.2, 2.0]), "a")
    np.testing.assert_allclose(risk, [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0], atol=0.08)
    assert np.all(np.diff(stable.probability(GRID, "a")) > -1e-12)
    assert stable.highest("a", GRID, 0.5) == pytest.approx(-0.5, abs=0.1)


def test_the_risk_is_that_of_dense_sums() -> None:
    """Two tasks, all of mu, tau and theta on a grid, without the order of sums that makes it fast."""
    from math import erf

    from paceline.model.stable_rates import CHANCE, SPREADS, WIDTH

    stable = rates_of(a=([-1.0], [0.2]), b=([-0.4], []))
    grid = stable.grid[::4]

    def label(rate: float, has_failed: bool, theta: float) -> float:
        fails = CHANCE + (1 - 2 * CHANCE) * 0.5 * (1 + erf((rate - theta) / WIDTH / 2**0.5))
        return fails if has_failed else 1 - fails

    a = np.array([label(-1.0, False, theta) * label(0.2, True, theta) for theta in grid])
    b = np.array([label(-0.4, False, theta) for theta in grid])
    joint = np.zeros((len(grid), len(grid)))
    for spread in SPREADS:
        for mu in grid:
            near = np.exp(-0.5 * ((grid - mu) / spread) ** 2)
            near /= near.sum()
            joint += np.outer(near * a, near * b)
    joint /= joint.sum()
    for name, weights in (("a", joint.sum(1)), ("b", joint.sum(0))):
        risk = [
            sum(weights * 0.5 * (1 + np.array([erf((r - t) / WIDTH / 2**0.5) for t in grid]))) for r in (-0.5, 0, 0.4)
        ]
        np.testing.assert_allclose(stable.probability(np.array([-0.5, 0.0, 0.4]), name), risk, atol=0.02)


def test_tasks_learn_from_each_other_and_keep_what_they_have_shown() -> None:
    stable = rates_of(a=([-2.0, -1.0], [-0.5]), b=([-2.0, 0.5], []), c=([-2.0], []))
    limits = {task: stable.highest(task, GRID, 0.5) for task in ("a", "b", "c", "new")}
    assert -1.1 < limits["a"] < -0.5
    assert limits["b"] >= 0.5
    assert limits["a"] < limits["c"] < limits["b"] + 0.5
    alike = rates_of(a=([-2.0, -1.0], [-0.9]), b=([-2.0, -1.0], [-0.9]), c=([-2.0], []))
    assert alike.highest("c", GRID, 0.5) == pytest.approx(-0.95, abs=0.2)
    assert alike.highest("new", GRID, 0.3) <= alike.highest("new", GRID, 0.7)


def test_one_failure_for_another_reason_forbids_nothing_that_has_worked() -> None:
    worked = np.linspace(-2.0, -1.0, 6).tolist()
    assert rates_of(a=(worked, [-1.8])).highest("a", GRID, 0.3) >= -1.1


def test_without_a_safe_rate_it_is_the_lowest() -> None:
    assert rates_of(a=([], [-2.5, -2.5])).highest("a", np.array([0.0, 1.0]), 0.3) == 0.0


def test_labels_belong_to_rates() -> None:
    with pytest.raises(InputError, match="expected one label and one task per interval, got 1, 2 and 1"):
        StableRates.fit(np.zeros(1), np.zeros(2, dtype=bool), ["a"])
