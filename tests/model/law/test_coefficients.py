"""Coefficients at fixed exponents: outliers, heavy tails, shared centres, draws."""

import numpy as np
import pytest

from paceline.model.law.coefficients import CoefficientPrior, solve_coefficients
from paceline.model.law.terms import COUNT, EXPONENTIALS

TRUTH = np.zeros(COUNT)
TRUTH[[0, 1, 3]] = 1.0, 2.0, 0.5
WEAK = CoefficientPrior(np.full(COUNT, 1e-4), np.zeros((COUNT, COUNT)))


def problem(rng: np.random.Generator, rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Whitened terms and losses with unit noise."""
    design = 30 * rng.uniform(size=(rows, COUNT))
    return design, design @ TRUTH + rng.standard_normal(rows)


def test_coefficients_are_recovered_and_not_negative(rng: np.random.Generator) -> None:
    solution = solve_coefficients(*problem(rng), WEAK)
    assert solution.coefficients.min() >= 0
    np.testing.assert_allclose(solution.coefficients, TRUTH, atol=0.05)


def test_outliers_count_little(rng: np.random.Generator) -> None:
    design, target = problem(rng)
    target[:5] += 1e4
    np.testing.assert_allclose(solve_coefficients(design, target, WEAK).coefficients, TRUTH, atol=0.3)


def test_exponentials_have_heavier_tails_than_other_coefficients(rng: np.random.Generator) -> None:
    tight = CoefficientPrior(np.full(COUNT, 400.0), np.zeros((COUNT, COUNT)))
    solution = solve_coefficients(*problem(rng), tight)
    away = solution.coefficients > 0.2
    assert np.all(solution.precisions[EXPONENTIALS][away[EXPONENTIALS]] < 400)
    assert np.all(solution.precisions[:2] == 400)


def test_a_task_without_information_has_the_shared_coefficients() -> None:
    solution = solve_coefficients(np.zeros((3, COUNT)), np.zeros(3), WEAK, centre=TRUTH)
    np.testing.assert_allclose(solution.coefficients, TRUTH, atol=1e-6)
    assert solution.means == pytest.approx(TRUTH)


def test_draws_spread_around_the_solution(rng: np.random.Generator) -> None:
    design, target = problem(rng)
    best = solve_coefficients(design, target, WEAK)
    draws = np.array([solve_coefficients(design, target, WEAK, None, rng).coefficients for _ in range(300)])
    exact = np.sqrt(np.linalg.inv(design.T @ design)[0, 0])
    assert draws[:, 0].mean() == pytest.approx(best.coefficients[0], abs=5 * exact)
    assert 0.3 * exact < draws[:, 0].std() < 1.5 * exact  # bounds at zero make the draws narrower
    assert draws.min() >= 0
