"""Solvers against brute force and against scipy."""

import numpy as np
import pytest
from scipy.optimize import nnls

from paceline.model.law.solvers import inverse_factor, nelder_mead, nonnegative
from tests import reference


@pytest.mark.parametrize("seed", range(8))
def test_nonnegative_agrees_with_brute_force_and_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(12, 7)) * 10.0 ** rng.uniform(-3, 3, 7)  # columns of very different sizes
    target = design @ (np.maximum(0, rng.normal(size=7)) / np.abs(design).max(0)) + 0.1 * rng.normal(size=12)
    matrix, vector = design.T @ design, design.T @ target
    solution = nonnegative(matrix, vector)
    scale = np.abs(design).max(0)
    assert solution.min() >= 0
    np.testing.assert_allclose(solution * scale, reference.nonnegative(matrix, vector) * scale, atol=1e-6)
    np.testing.assert_allclose(solution * scale, nnls(design, target)[0] * scale, atol=1e-6)


def test_nonnegative_of_a_target_that_points_away_is_zero() -> None:
    assert nonnegative(np.eye(3), -np.ones(3)).tolist() == [0, 0, 0]


def test_the_inverse_factor_whitens() -> None:
    covariance = np.array([[2.0, 0.6], [0.6, 1.0]])
    white = inverse_factor(covariance)
    np.testing.assert_allclose(white @ covariance @ white.T, np.eye(2), atol=1e-12)


def test_nelder_mead_finds_a_minimum() -> None:
    centre = np.array([0.3, -1.0])
    point = nelder_mead(lambda x: 100 * float(np.sum((x - centre) ** 2)), np.zeros(2), np.full(2, 0.5), 200)
    np.testing.assert_allclose(point, centre, atol=0.01)
