"""Fitting the law: non-negative least squares inside, four numbers outside, and draws of all of them.

Given (log a, log S0, g, z) the law is linear in its coefficients: least squares on residuals whitened by the covariance
of what it misses, with weights that bound outliers (Huber) and heavy-tailed priors on the exponentials, all by
reweighting. The four are found by Nelder-Mead, the scales of the misfit by its marginal likelihood with the
coefficients integrated out, in turn. Draws: importance sampling from a Student distribution around the mode, with
coefficients by perturb and optimise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from paceline.model.law import misfit
from paceline.model.law.misfit import Pairs, Places
from paceline.model.law.rows import Rows, Units, weights
from paceline.model.law.terms import (
    CENTRE,
    EXPONENTIALS,
    HIGHEST,
    LOWEST,
    SPREAD,
    alikeness,
    prior_precision,
    still_to_learn,
    terms,
)
from paceline.model.linalg import tensor

DRAWS, PROPOSED = 128, 256
BOUND = 3.0  # deviations from which on a residual counts linearly
REWEIGHTED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows and everything about them that does not change during a fit.

    Args:
        rows, units: what was observed.
        splits, alike: how runs and tasks are related (see `misfit.covariance`).
    """

    rows: Rows
    units: Units
    splits: Float[np.ndarray, "runs runs"]
    alike: Float[np.ndarray, "tasks tasks"]

    def columns(self, shape: Float[np.ndarray, "4"]) -> Float[np.ndarray, "rows terms"]:
        """The law's terms at the rows."""
        share = tensor(weights(float(np.clip(shape[2], LOWEST, HIGHEST))))
        noise = torch.einsum("n,nrm->rm", share, self.rows.modes)
        return terms(tensor(shape), self.rows.rate_sum, noise, self.units.largest).numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients at one shape, per task or of one, minus the log posterior, and the Gaussian prior it ended with."""

    coefficients: Float[np.ndarray, "*tasks terms"]
    energy: float
    means: Float[np.ndarray, "*tasks terms"]
    precisions: Float[np.ndarray, "*tasks terms"]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The law as fitted.

    Args:
        problem: what it was fitted to.
        shape, coefficients: the most probable ones; the coefficients per task.
        log_scales: of the misfit.
        speed: a typical -d log loss / d log S.
        shapes, draws: draws of the shape and, per task, of the coefficients.
        white: inverse Cholesky factor of the covariance of the rows.
        residuals: whitened residuals of the rows under each draw.
    """

    problem: Problem
    shape: Float[np.ndarray, "4"]
    coefficients: Float[np.ndarray, "tasks terms"]
    log_scales: Float[np.ndarray, "7"]
    speed: float
    shapes: Float[np.ndarray, "draws 4"]
    draws: Float[np.ndarray, "draws tasks terms"]
    white: Float[np.ndarray, "rows rows"]
    residuals: Float[np.ndarray, "draws rows"]
    places: Places


class _Search:
    """One fit on its way: the covariance of the residuals changes, then the shape, then again."""

    def __init__(self, problem: Problem) -> None:
        self.problem, rows = problem, problem.rows
        self.tasks = problem.alike.shape[0]
        self.number = rows.task if self.tasks > 1 else np.zeros(len(rows.task), dtype=int)
        self.same_task = np.equal.outer(self.number, self.number)
        self.precision = prior_precision(rows.typical, rows.span)
        self.alike = alikeness(self.precision)
        self.centre = misfit.prior_centre(rows.span)
        self.scale, self.speed = rows.level, 0.1
        ones = np.ones(len(rows.loss))
        self.move(Places(rows.log_step, rows.log10_lr, ones, rows.behind, 0 * ones, rows.run, rows.task))

    def move(self, places: Places) -> None:
        """Take other speeds of the runs."""
        self.places = places
        self.pairs = Pairs.of(places, places, self.problem.splits, self.problem.alike)

    def whiten(self, log_scales: Float[np.ndarray, "7"]) -> None:
        """Take another covariance of the residuals."""
        self.log_scales, loss = log_scales, self.problem.rows.loss / self.scale
        covariance = self.covariance(log_scales)
        self.white = _inverse_factor(covariance)
        self.target = self.white @ loss
        # coefficients of a task are found from its own rows alone: others of another level would lead astray
        self.apart = self.white if self.tasks == 1 else _inverse_factor(covariance * self.same_task)
        self.own_target = self.apart @ loss

    def covariance(self, log_scales: Float[np.ndarray, "7"]) -> Float[np.ndarray, "rows rows"]:
        """Of the rows, noise included."""
        rows, total = self.problem.rows, self.pairs.covariance(log_scales)
        noise = np.exp(2 * log_scales[6]) * rows.noise**2
        total[np.diag_indices_from(total)] += noise + 1e-10
        return total

    def solve(self, shape: Float[np.ndarray, "4"], perturbed: np.random.Generator | None = None) -> Solution:
        """The coefficients at a shape; perturbed, a draw of them."""
        design, target = self.apart @ (self.problem.columns(shape) / self.scale[:, None]), self.own_target
        if self.tasks == 1:
            found = [self._coefficients(design, target, None, perturbed)]
        else:
            # what all tasks share is the prior of what each has of its own
            shared = self._coefficients(design, target, None, None).coefficients
            at = [self.problem.rows.task == task for task in range(self.tasks)]
            found = [self._coefficients(design[mine], target[mine], shared, perturbed) for mine in at]
        energy = sum(each.energy for each in found) + 0.5 * float(np.sum(((shape - CENTRE) / SPREAD) ** 2))
        coefficients, means, precisions = (
            np.array([getattr(each, name) for each in found]) for name in ("coefficients", "means", "precisions")
        )
        return Solution(coefficients, energy, means, precisions)

    def _coefficients(
        self,
        design: Float[np.ndarray, "rows terms"],
        target: Float[np.ndarray, "rows"],
        around: Float[np.ndarray, "terms"] | None,
        perturbed: np.random.Generator | None,
    ) -> Solution:
        """Reweighted non-negative least squares; `around` is the prior mean, zero where it is None."""
        mean = np.zeros(design.shape[1]) if around is None else around
        base = self.precision if around is None else 1.0 / (0.3 * around + 0.1 / np.sqrt(self.precision)) ** 2
        precision, residual, coefficients = base.copy(), np.zeros(len(target)), mean
        matrix, vector = np.diag(base), base * mean
        for repeat in range(REWEIGHTED):
            weighted = design / np.maximum(1.0, np.abs(residual) / BOUND)[:, None]
            if repeat:  # Cauchy tails: an exponential is there or it is not
                gap = (coefficients - mean)[EXPONENTIALS]
                precision[EXPONENTIALS] = 2.0 / (1.0 / base[EXPONENTIALS] + gap**2)
            prior = np.diag(precision) + self.alike
            matrix, vector = weighted.T @ design + prior, weighted.T @ target + prior @ mean
            coefficients = nonnegative(matrix, vector)
            residual = target - design @ coefficients
        size, away = np.abs(residual), coefficients - mean
        gap = base * away**2
        energy = np.where(size < BOUND, 0.5 * size**2, BOUND * (size - 0.5 * BOUND)).sum()
        energy += np.log1p(gap[EXPONENTIALS]).sum() + 0.5 * (gap.sum() - gap[EXPONENTIALS].sum())
        energy += 0.5 * away @ self.alike @ away
        if perturbed is not None:
            normals = perturbed.standard_normal(len(vector))
            coefficients = nonnegative(matrix, vector + cholesky(matrix, lower=True) @ normals)
        return Solution(coefficients, float(energy), mean, precision)

    def energy(self, shape: Float[np.ndarray, "4"]) -> float:
        """Minus the log posterior of a shape, up to a constant."""
        outside = max(0.0, LOWEST - shape[2], shape[2] - HIGHEST)
        return self.solve(shape).energy + 1e3 * outside

    def relative_to(self, shape: Float[np.ndarray, "4"]) -> None:
        """Make residuals relative to the law at this shape, and the misfit as large as runs move fast."""
        rows, columns = self.problem.rows, self.problem.columns(shape)
        solution = self.solve(shape)
        law = (columns * solution.coefficients[self.number]).sum(1)
        self.scale = np.maximum(law, 0.3 * rows.level)
        speeds = np.empty(len(rows.loss))
        for task in range(self.tasks):
            at = self.number == task
            rate_sum = rows.rate_sum[torch.as_tensor(np.flatnonzero(at))]
            coefficients = tensor(solution.coefficients[task])
            slope = still_to_learn(tensor(shape), coefficients, rate_sum, self.problem.units.largest)[1]
            speeds[at] = np.maximum(slope.numpy() / law[at], 1e-6)
        self.speed = float(np.exp(np.log(speeds).mean()))
        self.move(replace(self.places, speed=np.maximum(speeds / self.speed, misfit.STEADY)))

    def learn_scales(self, shape: Float[np.ndarray, "4"]) -> Float[np.ndarray, "7"]:
        """Scales of the misfit by marginal likelihood, with the coefficients integrated out."""
        solution, task = self.solve(shape), self.number
        columns = self.problem.columns(shape) / self.scale[:, None]
        law = (columns / solution.precisions[task]) @ columns.T * self.same_task
        target: np.ndarray = self.problem.rows.loss / self.scale - (columns * solution.means[task]).sum(1)

        def negative(log_scales: np.ndarray) -> float:
            try:
                covariance = self.covariance(log_scales)
                covariance += law
                factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                return 1e10
            whitened = solve_triangular(factor, target, lower=True, check_finite=False)
            prior = 0.5 * np.sum(((log_scales - self.centre) / misfit.SPREAD) ** 2)
            return float(0.5 * whitened @ whitened + np.log(np.diag(factor)).sum() + prior)

        return descend(negative, self.log_scales, np.full(7, 0.4), 150)

    def draw(self, shape: Float[np.ndarray, "4"], seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws of shapes and coefficients, by importance sampling from a Student distribution around the mode."""
        random, size, freedom = np.random.default_rng(seed), len(shape), 6.0
        factor = 1.1 * cholesky(self._curvature(shape), lower=True)
        normal = random.standard_normal((PROPOSED, size))
        student = normal / np.sqrt(random.chisquare(freedom, PROPOSED) / freedom)[:, None]
        shapes = shape + student @ factor.T
        shapes[:, 2] = np.clip(shapes[:, 2], LOWEST, HIGHEST)
        solved: list[Solution] = [self.solve(each, random) for each in shapes]
        log_proposal = -0.5 * (freedom + size) * np.log1p((student**2).sum(1) / freedom)
        log_weight = -np.array([solution.energy for solution in solved]) - log_proposal
        weight = np.exp(log_weight - log_weight.max())
        share = np.cumsum(weight) / weight.sum()
        chosen = np.searchsorted(share, (np.arange(DRAWS) + random.random()) / DRAWS).clip(0, PROPOSED - 1)
        random.shuffle(chosen)
        return shapes[chosen], np.array([solved[int(i)].coefficients for i in chosen])

    def _curvature(self, shape: Float[np.ndarray, "4"]) -> Float[np.ndarray, "4 4"]:
        """Covariance of the shape by second differences; never wider than twice the prior."""
        step, axes, here = 0.15 * SPREAD, np.eye(4), self.energy(shape)
        up = [self.energy(shape + step * axis) for axis in axes]
        down = [self.energy(shape - step * axis) for axis in axes]
        hessian = np.empty((4, 4))
        for i in range(4):
            hessian[i, i] = (up[i] + down[i] - 2 * here) / 0.15**2
            for j in range(i):
                both = step * (axes[i] + axes[j])
                mixed = self.energy(shape + both) + self.energy(shape - both) + 2 * here
                hessian[i, j] = hessian[j, i] = (mixed - up[i] - up[j] - down[i] - down[j]) / (2 * 0.15**2)
        values, vectors = np.linalg.eigh(np.nan_to_num(hessian, nan=1.0, posinf=1e6, neginf=1.0))
        inverse = vectors / np.maximum(values, 0.5) @ vectors.T
        return np.outer(SPREAD, SPREAD) * inverse


def _inverse_factor(covariance: Float[np.ndarray, "rows rows"]) -> Float[np.ndarray, "rows rows"]:
    """L^-1 with L L' = covariance: it whitens."""
    factor = cholesky(covariance, lower=True)
    return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))


def cholesky(matrix: np.ndarray, **options: bool) -> np.ndarray:
    """That of scipy, imported when first needed: it takes a quarter as long as torch."""
    from scipy.linalg import cholesky as factor  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return np.asarray(factor(matrix, **options))


def solve_triangular(factor: np.ndarray, right: np.ndarray, **options: Any) -> np.ndarray:
    """That of scipy, likewise."""
    from scipy.linalg import solve_triangular as solve  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return np.asarray(solve(factor, right, **options))


def nonnegative(
    matrix: Float[np.ndarray, "terms terms"], vector: Float[np.ndarray, "terms"]
) -> Float[np.ndarray, "terms"]:
    """argmin over c >= 0 of c' matrix c / 2 - vector' c."""
    from scipy.optimize import nnls  # likewise

    units = 1.0 / np.sqrt(np.diag(matrix))
    factor = cholesky(matrix * np.outer(units, units) + 1e-12 * np.eye(len(vector)))
    right = solve_triangular(factor, units * vector, trans="T")
    return np.asarray(nnls(factor, right)[0]) * units


def descend(function: Callable[[np.ndarray], float], start: np.ndarray, step: np.ndarray, most: int) -> np.ndarray:
    """Nelder and Mead's descent with this first step in each direction."""
    from scipy.optimize import minimize  # likewise

    simplex = np.vstack([start, start + np.diag(step)])
    found: Any = minimize(
        function,
        start,
        method="Nelder-Mead",
        options={"maxfev": most, "xatol": 1e-3, "fatol": 0.01, "initial_simplex": simplex},
    )
    return np.asarray(found.x, dtype=float)


def fit(problem: Problem, *, seed: int = 0, start: Fitted | None = None) -> Fitted:
    """Fit the law; a fit to fewer observations of the same runs is a good start."""
    search = _Search(problem)
    search.whiten(search.centre if start is None else start.log_scales)
    shape = descend(search.energy, CENTRE if start is None else start.shape, 0.5 * SPREAD, 100)
    for _ in range(2):
        search.relative_to(shape)
        search.whiten(search.learn_scales(shape))
        shape = descend(search.energy, shape, 0.5 * SPREAD, 120)
    coefficients = search.solve(shape).coefficients
    shapes, draws = search.draw(shape, seed)
    residuals = np.array(
        [
            search.target - search.white @ ((problem.columns(s) * c[search.number]).sum(1) / search.scale)
            for s, c in zip(shapes, draws, strict=True)
        ]
    )
    return Fitted(
        problem,
        shape,
        coefficients,
        search.log_scales,
        search.speed,
        shapes,
        draws,
        search.white,
        residuals,
        search.places,
    )
