"""Fitting the law: least squares inside, the four exponents outside, and draws of all parameters.

Given the exponents, the law is linear in its coefficients. The exponents and the scales of the misfit are fitted in
turn: the exponents by Nelder and Mead's search, the scales by marginal likelihood with the coefficients integrated out.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from paceline.model.law.misfit import ResidualPoints
from paceline.model.law.sampling import draw_parameters
from paceline.model.law.search import LawSearch, Problem
from paceline.model.law.settings import SEARCH
from paceline.model.law.terms import CENTRE


@dataclass(frozen=True, slots=True, eq=False)
class LawFit:
    """A fitted law.

    Args:
        problem: what it was fitted to.
        exponents, coefficients: the most probable ones; the coefficients per task.
        log_scales: of the misfit.
        speed: a typical -d log loss / d log S.
        exponent_draws, coefficient_draws: draws of the exponents and, per task, of the coefficients.
        white: inverse Cholesky factor of the covariance of the rows.
        residuals: whitened residuals of the rows under each draw.
        points: the rows as points of the misfit.
    """

    problem: Problem
    exponents: Float[np.ndarray, "4"]
    coefficients: Float[np.ndarray, "tasks terms"]
    log_scales: Float[np.ndarray, "7"]
    speed: float
    exponent_draws: Float[np.ndarray, "draws 4"]
    coefficient_draws: Float[np.ndarray, "draws tasks terms"]
    white: Float[np.ndarray, "rows rows"]
    residuals: Float[np.ndarray, "draws rows"]
    points: ResidualPoints


def fit(problem: Problem, *, seed: int = 0, start: LawFit | None = None) -> LawFit:
    """Fit the law.

    Args:
        problem: what to fit it to.
        seed: of the draws.
        start: a fit to fewer observations of the same runs, to start from.
    """
    search = LawSearch(problem)
    search.whiten(search.centre if start is None else start.log_scales)
    exponents = search.fit_exponents(CENTRE if start is None else start.exponents, SEARCH.first_evaluations)
    for _ in range(SEARCH.rounds):
        search.make_relative(exponents)
        search.whiten(search.fit_scales(exponents))
        exponents = search.fit_exponents(exponents, SEARCH.evaluations)
    coefficients = search.solve(exponents).coefficients
    exponent_draws, coefficient_draws = draw_parameters(search, exponents, seed)
    residuals = np.array(
        [
            search.target - search.white @ ((problem.columns(e) * c[search.number]).sum(1) / search.scale)
            for e, c in zip(exponent_draws, coefficient_draws, strict=True)
        ]
    )
    return LawFit(
        problem=problem,
        exponents=exponents,
        coefficients=coefficients,
        log_scales=search.log_scales,
        speed=search.speed,
        exponent_draws=exponent_draws,
        coefficient_draws=coefficient_draws,
        white=search.white,
        residuals=residuals,
        points=search.points,
    )
