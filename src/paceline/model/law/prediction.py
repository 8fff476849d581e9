"""The distribution of the log loss of a run under a schedule, given all observations.

log loss = log law + misfit: draws of the law's parameters each give a mean, and share one covariance of the misfit. A
run that the law was not fitted to is conditioned on first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.law import misfit
from paceline.model.law.ancestry import shared_until
from paceline.model.law.fit import LawFit
from paceline.model.law.misfit import ResidualPoints
from paceline.model.law.settings import MISFIT, SEARCH
from paceline.model.law.smoothing import stretches
from paceline.model.law.state import SchedulePieces
from paceline.model.law.terms import progress_left, terms
from paceline.model.law.units import usable_observations
from paceline.model.linalg import tensor
from paceline.traces import Schedule, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """log loss = log law + mean + root e, with e standard normal, at some steps.

    Args:
        law: per draw of its parameters.
        mean: of the misfit, per draw.
        root: a square root of the covariance of the misfit.
    """

    law: Float[Tensor, "draws steps"]
    mean: Float[Tensor, "draws steps"]
    root: Float[Tensor, "steps steps"]


def law_at(fit: LawFit, pieces: SchedulePieces, task: int) -> Float[Tensor, "draws steps"]:
    """The law at the steps of a schedule, for each draw of its parameters; differentiable in the rates."""
    units = fit.problem.units
    exponents, coefficients = tensor(fit.exponent_draws), tensor(fit.coefficient_draws[:, task])
    noise = pieces.noise(exponents[:, 2], units.reference, units.largest)
    columns = terms(exponents, pieces.rate_sum()[0], noise, units.largest)
    return (columns @ coefficients[..., None])[..., 0]


def predict(
    fit: LawFit,
    fitted_runs: Sequence[Trace],
    schedule: Schedule,
    at: Int[np.ndarray, "steps"],
    start: Trace | None,
    task: int,
    noise: float,
) -> Prediction:
    """The distribution at some steps of a run.

    Args:
        fit: the law.
        fitted_runs: the runs it was fitted to.
        schedule: of the run, from step 0.
        at: the steps.
        start: the run so far; None for a new run.
        task: number of its task.
        noise: relative deviation of one observation.
    """
    before, losses, counts = _new_observations(fit, fitted_runs, start)
    steps = np.concatenate([before, at])
    if len(before) and before[-1] == at[0]:  # the current level as a forecast: it is observed with noise
        steps = np.concatenate([before, at[1:]])
    pieces = SchedulePieces.of(schedule, steps)
    law = law_at(fit, pieces, task)
    points = _points(fit, schedule, pieces, steps, task)
    related = np.array([-np.inf if start is None else shared_until(start, run) for run in fitted_runs])
    until = np.vstack([np.column_stack([fit.problem.shared_until, related]), np.append(related, np.inf)])
    correlation = fit.problem.correlation
    cross = misfit.covariance(fit.log_scales, points, fit.points, until, correlation) @ fit.white.T
    covariance = misfit.covariance(fit.log_scales, points, points, until, correlation) - cross @ cross.T
    mean = fit.residuals @ cross.T
    k = len(before)
    if k:
        observed = covariance[:k, :k] + np.diag(noise**2 / counts) + 1e-12 * np.eye(k)
        gain = np.linalg.solve(observed, covariance[:k]).T
        mean = mean + (np.log(losses / law.numpy()[:, :k]) - mean[:, :k]) @ gain.T
        covariance = covariance - gain @ covariance[:k]
    first = len(points.run) - len(at)
    values, vectors = np.linalg.eigh(covariance[first:, first:])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return Prediction(law[:, first:], tensor(mean[:, first:]), tensor(root))


def _points(
    fit: LawFit, schedule: Schedule, pieces: SchedulePieces, steps: Int[np.ndarray, "steps"], task: int
) -> ResidualPoints:
    """The steps of a new run as points of the misfit."""
    units = fit.problem.units
    exponents, coefficients = tensor(fit.exponents), tensor(fit.coefficients[task])
    last = max(float(fit.points.log_step.max()), 0.0)
    rate_sum = pieces.rate_sum()[0]
    columns = terms(exponents, rate_sum, pieces.noise(exponents[2:3], units.reference, units.largest)[0], units.largest)
    law = (columns @ coefficients).numpy()
    left, slope = (part.numpy() for part in progress_left(exponents, coefficients, rate_sum, units.largest))
    last_sum = SchedulePieces.of(schedule, np.array([max(1, round(np.exp(last)))])).rate_sum()[0]
    left_at_last = progress_left(exponents, coefficients, last_sum, units.largest)[0].numpy()
    log_step = np.log(steps)
    return ResidualPoints(
        log_step=log_step,
        log10_lr=np.log10(pieces.last_rates.numpy()),
        speed=np.maximum(slope / law / fit.speed, MISFIT.least_speed),
        behind=np.ones(len(steps)),
        ahead=np.where(log_step > last, np.maximum(0.0, left_at_last - left), 0.0) / law,
        run=np.full(len(steps), len(fit.problem.shared_until)),
        task=np.full(len(steps), task),
    )


def _new_observations(
    fit: LawFit, fitted_runs: Sequence[Trace], start: Trace | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, losses and counts of what a run observed beyond the fit, as means over a few stretches."""
    nothing = np.zeros(0, dtype=int), np.zeros(0), np.zeros(0)
    if start is None:
        return nothing
    until = [np.exp(shared_until(start, run)) for run in fitted_runs]
    fitted_until = max((min(u, float(t.last_step)) for u, t in zip(until, fitted_runs, strict=True)), default=0.0)
    steps, losses = usable_observations(start, fit.problem.units, with_parents=True)
    new = steps > fitted_until
    if not new.any():
        return nothing
    stretch = stretches(steps[new], SEARCH.new_run_rows)
    count = np.bincount(stretch).astype(float)
    return (
        (np.bincount(stretch, steps[new]) / count).astype(int),
        np.bincount(stretch, losses[new]) / count,
        count,
    )
