"""scipy's solvers, typed, and imported when they are first called: scipy takes a quarter as long to import as torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float


def cholesky(matrix: np.ndarray, **options: bool) -> np.ndarray:
    """scipy's Cholesky factor."""
    from scipy.linalg import cholesky as factor  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return np.asarray(factor(matrix, **options))


def solve_triangular(factor: np.ndarray, right: np.ndarray, **options: Any) -> np.ndarray:
    """scipy's solution of a triangular system."""
    from scipy.linalg import solve_triangular as solve  # pyright: ignore

    return np.asarray(solve(factor, right, **options))


def inverse_factor(covariance: Float[np.ndarray, "rows rows"]) -> Float[np.ndarray, "rows rows"]:
    """L^-1 with L L' = covariance. It whitens."""
    factor = cholesky(covariance, lower=True)
    return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))


def nonnegative(
    matrix: Float[np.ndarray, "terms terms"], vector: Float[np.ndarray, "terms"]
) -> Float[np.ndarray, "terms"]:
    """argmin over c >= 0 of c' matrix c / 2 - vector' c."""
    from scipy.optimize import nnls

    units = 1.0 / np.sqrt(np.diag(matrix))
    factor = cholesky(matrix * np.outer(units, units) + 1e-12 * np.eye(len(vector)))
    right = solve_triangular(factor, units * vector, trans="T")
    return np.asarray(nnls(factor, right)[0]) * units


def nelder_mead(function: Callable[[np.ndarray], float], start: np.ndarray, step: np.ndarray, most: int) -> np.ndarray:
    """Nelder and Mead's minimiser.

    Args:
        function: what is minimised.
        start: the first point.
        step: first step in each direction.
        most: evaluations.
    """
    from scipy.optimize import minimize

    simplex = np.vstack([start, start + np.diag(step)])
    result: Any = minimize(
        function,
        start,
        method="Nelder-Mead",
        options={"maxfev": most, "xatol": 1e-3, "fatol": 0.01, "initial_simplex": simplex},
    )
    return np.asarray(result.x, dtype=float)
