"""Draws of the law's parameters: importance sampling from a Student distribution around the mode."""

import numpy as np
from jaxtyping import Float

from paceline.model.law.coefficients import Solution
from paceline.model.law.search import LawSearch
from paceline.model.law.settings import FORM, SEARCH
from paceline.model.law.solvers import cholesky
from paceline.model.law.terms import SPREAD


def draw_parameters(
    search: LawSearch, mode: Float[np.ndarray, "4"], seed: int
) -> tuple[Float[np.ndarray, "draws 4"], Float[np.ndarray, "draws tasks terms"]]:
    """Draws of the exponents and, for each, of the coefficients per task.

    Args:
        search: the fit.
        mode: the most probable exponents.
        seed: of the draws.
    """
    random, size, freedom, count = np.random.default_rng(seed), len(mode), SEARCH.freedom, SEARCH.proposals
    factor = SEARCH.widening * cholesky(exponent_covariance(search, mode), lower=True)
    normal = random.standard_normal((count, size))
    student = normal / np.sqrt(random.chisquare(freedom, count) / freedom)[:, None]
    exponents = mode + student @ factor.T
    exponents[:, 2] = np.clip(exponents[:, 2], FORM.g_low, FORM.g_high)
    solutions: list[Solution] = [search.solve(each, random) for each in exponents]
    log_proposal = -0.5 * (freedom + size) * np.log1p((student**2).sum(1) / freedom)
    log_weight = -np.array([solution.energy for solution in solutions]) - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    share = np.cumsum(weight) / weight.sum()
    chosen = np.searchsorted(share, (np.arange(SEARCH.draws) + random.random()) / SEARCH.draws).clip(0, count - 1)
    random.shuffle(chosen)
    return exponents[chosen], np.array([solutions[int(i)].coefficients for i in chosen])


def exponent_covariance(search: LawSearch, mode: Float[np.ndarray, "4"]) -> Float[np.ndarray, "4 4"]:
    """Covariance of the exponents at the mode, by second differences; never wider than twice the prior."""
    width, size = SEARCH.difference_step, len(mode)
    step, axes, here = width * SPREAD, np.eye(size), search.energy(mode)
    up = [search.energy(mode + step * axis) for axis in axes]
    down = [search.energy(mode - step * axis) for axis in axes]
    hessian = np.empty((size, size))
    for i in range(size):
        hessian[i, i] = (up[i] + down[i] - 2 * here) / width**2
        for j in range(i):
            both = step * (axes[i] + axes[j])
            mixed = search.energy(mode + both) + search.energy(mode - both) + 2 * here
            hessian[i, j] = hessian[j, i] = (mixed - up[i] - up[j] - down[i] - down[j]) / (2 * width**2)
    values, vectors = np.linalg.eigh(np.nan_to_num(hessian, nan=1.0, posinf=1e6, neginf=1.0))
    inverse = vectors / np.maximum(values, 0.5) @ vectors.T
    return np.outer(SPREAD, SPREAD) * inverse
