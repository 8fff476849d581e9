"""The coefficients of the law at fixed exponents: non-negative least squares with robust weights and heavy tails.

The residuals are whitened by the covariance of the misfit. Reweighting bounds outliers (Huber) and gives the
exponentials Cauchy priors.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from paceline.model.law.settings import SEARCH
from paceline.model.law.solvers import cholesky, nonnegative
from paceline.model.law.terms import EXPONENTIALS


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients at some exponents, of one task or of each.

    Args:
        coefficients: the most probable ones.
        energy: minus their log posterior.
        means, precisions: of the Gaussian prior after the last reweighting.
    """

    coefficients: Float[np.ndarray, "*tasks terms"]
    energy: float
    means: Float[np.ndarray, "*tasks terms"]
    precisions: Float[np.ndarray, "*tasks terms"]


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientPrior:
    """The prior of the coefficients.

    Args:
        precision: of each coefficient about zero, before the heavy tails.
        neighbours: of the differences between neighbouring modes.
    """

    precision: Float[np.ndarray, "terms"]
    neighbours: Float[np.ndarray, "terms terms"]


def solve_coefficients(
    design: Float[np.ndarray, "rows terms"],
    target: Float[np.ndarray, "rows"],
    prior: CoefficientPrior,
    centre: Float[np.ndarray, "terms"] | None = None,
    random: np.random.Generator | None = None,
) -> Solution:
    """The most probable coefficients, or with `random` a draw of them.

    Args:
        design: whitened terms of the law at the rows.
        target: whitened losses of the rows.
        prior: of the coefficients.
        centre: coefficients that all tasks share, as the prior mean of one task's; None for a prior mean of zero.
        random: source of randomness of a draw (perturb and optimise).
    """
    mean = np.zeros(design.shape[1]) if centre is None else centre
    base = prior.precision
    if centre is not None:
        base = 1.0 / (SEARCH.shared_weight * centre + SEARCH.shared_floor / np.sqrt(prior.precision)) ** 2
    precision, residual, coefficients = base.copy(), np.zeros(len(target)), mean
    matrix, vector = np.diag(base), base * mean
    for repeat in range(SEARCH.reweightings):
        weighted = design / np.maximum(1.0, np.abs(residual) / SEARCH.outlier)[:, None]
        if repeat:  # Cauchy tails: an exponential is there or it is not
            gap = (coefficients - mean)[EXPONENTIALS]
            precision[EXPONENTIALS] = 2.0 / (1.0 / base[EXPONENTIALS] + gap**2)
        total = np.diag(precision) + prior.neighbours
        matrix, vector = weighted.T @ design + total, weighted.T @ target + total @ mean
        coefficients = nonnegative(matrix, vector)
        residual = target - design @ coefficients
    energy = _energy(residual, coefficients - mean, base, prior.neighbours)
    if random is not None:
        normals = random.standard_normal(len(vector))
        coefficients = nonnegative(matrix, vector + cholesky(matrix, lower=True) @ normals)
    return Solution(coefficients, energy, mean, precision)


def _energy(
    residual: Float[np.ndarray, "rows"],
    away: Float[np.ndarray, "terms"],
    base: Float[np.ndarray, "terms"],
    neighbours: Float[np.ndarray, "terms terms"],
) -> float:
    """Minus the log posterior: Huber's loss of the residuals and the priors of the coefficients."""
    size, bound, gap = np.abs(residual), SEARCH.outlier, base * away**2
    energy = np.where(size < bound, 0.5 * size**2, bound * (size - 0.5 * bound)).sum()
    energy += np.log1p(gap[EXPONENTIALS]).sum() + 0.5 * (gap.sum() - gap[EXPONENTIALS].sum())
    energy += 0.5 * away @ neighbours @ away
    return float(energy)
