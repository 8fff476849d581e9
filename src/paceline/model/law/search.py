"""One fit of the law in progress: the exponents and the scales of the misfit, fitted in turn."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from paceline.model.law import misfit
from paceline.model.law.coefficients import CoefficientPrior, Solution, solve_coefficients
from paceline.model.law.misfit import PointPairs, ResidualPoints
from paceline.model.law.rows import Rows, interpolation_weights
from paceline.model.law.settings import FORM, MISFIT, SEARCH
from paceline.model.law.solvers import cholesky, inverse_factor, nelder_mead, solve_triangular
from paceline.model.law.terms import CENTRE, SPREAD, neighbour_precision, prior_precision, progress_left, terms
from paceline.model.law.units import Units
from paceline.model.linalg import tensor


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What the law is fitted to.

    Args:
        rows: of all runs.
        units: of losses, rates and S.
        shared_until: log of the step until which two runs were the same.
        correlation: between tasks, of what the law misses.
    """

    rows: Rows
    units: Units
    shared_until: Float[np.ndarray, "runs runs"]
    correlation: Float[np.ndarray, "tasks tasks"]

    def columns(self, exponents: Float[np.ndarray, "4"]) -> Float[np.ndarray, "rows terms"]:
        """The law's terms at the rows."""
        weights = tensor(interpolation_weights(float(np.clip(exponents[2], FORM.g_low, FORM.g_high))))
        noise = torch.einsum("n,nrm->rm", weights, self.rows.modes)
        return terms(tensor(exponents), self.rows.rate_sum, noise, self.units.largest).numpy()


class LawSearch:
    """The state of a fit: what residuals are relative to, and the covariance that whitens them.

    `whiten` changes the covariance, `make_relative` the law that residuals are relative to. `energy` is what the search
    for the exponents minimises; `fit_scales` fits the covariance at some exponents.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, rows = problem, problem.rows
        self.tasks = problem.correlation.shape[0]
        self.number = rows.task if self.tasks > 1 else np.zeros(len(rows.task), dtype=int)
        self.same_task = np.equal.outer(self.number, self.number)
        precision = prior_precision(rows.typical, rows.span)
        self.prior = CoefficientPrior(precision, neighbour_precision(precision))
        self.centre = misfit.prior_centre(rows.span)
        self.scale, self.speed = rows.level, 0.1
        ones = np.ones(len(rows.loss))
        self._set_points(ResidualPoints(rows.log_step, rows.log10_lr, ones, rows.behind, 0 * ones, rows.run, rows.task))

    def _set_points(self, points: ResidualPoints) -> None:
        self.points = points
        self.pairs = PointPairs.of(points, points, self.problem.shared_until, self.problem.correlation)

    def whiten(self, log_scales: Float[np.ndarray, "7"]) -> None:
        """Whiten residuals by the covariance with these scales."""
        self.log_scales, loss = log_scales, self.problem.rows.loss / self.scale
        covariance = self.covariance(log_scales)
        self.white = inverse_factor(covariance)
        self.target = self.white @ loss
        # The coefficients of a task are fitted to its own rows: rows of other tasks are at other levels.
        self.task_white = self.white if self.tasks == 1 else inverse_factor(covariance * self.same_task)
        self.task_target = self.task_white @ loss

    def covariance(self, log_scales: Float[np.ndarray, "7"]) -> Float[np.ndarray, "rows rows"]:
        """Covariance of the rows with noise."""
        rows, total = self.problem.rows, self.pairs.covariance(log_scales)
        noise = np.exp(2 * log_scales[misfit.NOISE]) * rows.noise**2
        total[np.diag_indices_from(total)] += noise + 1e-10
        return total

    def solve(self, exponents: Float[np.ndarray, "4"], random: np.random.Generator | None = None) -> Solution:
        """The coefficients at some exponents; with `random`, a draw of them."""
        design, target = self.task_white @ (self.problem.columns(exponents) / self.scale[:, None]), self.task_target
        if self.tasks == 1:
            solutions = [solve_coefficients(design, target, self.prior, None, random)]
        else:
            # What all tasks share is the prior mean of each task.
            shared = solve_coefficients(design, target, self.prior).coefficients
            masks = [self.problem.rows.task == task for task in range(self.tasks)]
            solutions = [solve_coefficients(design[at], target[at], self.prior, shared, random) for at in masks]
        energy = sum(each.energy for each in solutions) + 0.5 * float(np.sum(((exponents - CENTRE) / SPREAD) ** 2))
        return Solution(
            coefficients=np.array([each.coefficients for each in solutions]),
            energy=energy,
            means=np.array([each.means for each in solutions]),
            precisions=np.array([each.precisions for each in solutions]),
        )

    def energy(self, exponents: Float[np.ndarray, "4"]) -> float:
        """Minus the log posterior of the exponents, up to a constant."""
        outside = max(0.0, FORM.g_low - exponents[2], exponents[2] - FORM.g_high)
        return self.solve(exponents).energy + 1e3 * outside

    def make_relative(self, exponents: Float[np.ndarray, "4"]) -> None:
        """Make residuals relative to the law at these exponents, and the own misfit of a run as large as it is fast."""
        rows, columns = self.problem.rows, self.problem.columns(exponents)
        solution = self.solve(exponents)
        law = (columns * solution.coefficients[self.number]).sum(1)
        self.scale = np.maximum(law, 0.3 * rows.level)
        speeds = np.empty(len(rows.loss))
        for task in range(self.tasks):
            at = self.number == task
            rate_sum = rows.rate_sum[torch.as_tensor(np.flatnonzero(at))]
            coefficients = tensor(solution.coefficients[task])
            slope = progress_left(tensor(exponents), coefficients, rate_sum, self.problem.units.largest)[1]
            speeds[at] = np.maximum(slope.numpy() / law[at], 1e-6)
        self.speed = float(np.exp(np.log(speeds).mean()))
        self._set_points(replace(self.points, speed=np.maximum(speeds / self.speed, MISFIT.least_speed)))

    def fit_scales(self, exponents: Float[np.ndarray, "4"]) -> Float[np.ndarray, "7"]:
        """Log scales of the misfit by marginal likelihood, with the coefficients integrated out."""
        solution, task = self.solve(exponents), self.number
        columns = self.problem.columns(exponents) / self.scale[:, None]
        law = (columns / solution.precisions[task]) @ columns.T * self.same_task
        target: np.ndarray = self.problem.rows.loss / self.scale - (columns * solution.means[task]).sum(1)

        def negative_likelihood(log_scales: np.ndarray) -> float:
            try:
                covariance = self.covariance(log_scales)
                covariance += law
                factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                return 1e10
            whitened = solve_triangular(factor, target, lower=True, check_finite=False)
            prior = 0.5 * np.sum(((log_scales - self.centre) / misfit.SPREAD) ** 2)
            return float(0.5 * whitened @ whitened + np.log(np.diag(factor)).sum() + prior)

        step = np.full(len(self.log_scales), SEARCH.scale_step)
        return nelder_mead(negative_likelihood, self.log_scales, step, SEARCH.scale_evaluations)

    def fit_exponents(self, start: Float[np.ndarray, "4"], evaluations: int) -> Float[np.ndarray, "4"]:
        """The most probable exponents, with at most so many evaluations from `start` on."""
        return nelder_mead(self.energy, start, SEARCH.exponent_step * SPREAD, evaluations)
