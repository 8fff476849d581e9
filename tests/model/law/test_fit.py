"""The parts of a fit that can be checked by brute force."""

import numpy as np
import pytest
from scipy.optimize import nnls

from paceline.model.law.fit import nonnegative
from tests import reference


@pytest.mark.parametrize("seed", range(8))
def test_nonnegative_agrees_with_brute_force_and_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(12, 7)) * 10.0 ** rng.uniform(-3, 3, 7)  # columns of very different sizes
    target = design @ (np.maximum(0, rng.normal(size=7)) / np.abs(design).max(0)) + 0.1 * rng.normal(size=12)
    matrix, vector = design.T @ design, design.T @ target
    found = nonnegative(matrix, vector)
    scale = np.abs(design).max(0)
    assert found.min() >= 0
    np.testing.assert_allclose(found * scale, reference.nonnegative(matrix, vector) * scale, atol=1e-6)
    np.testing.assert_allclose(found * scale, nnls(design, target)[0] * scale, atol=1e-6)


def test_nonnegative_of_a_target_that_points_away_is_zero() -> None:
    assert nonnegative(np.eye(3), -np.ones(3)).tolist() == [0, 0, 0]
