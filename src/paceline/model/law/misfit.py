"""What the law misses: a Gaussian process on the relative residual, loss / law - 1.

It has four parts, each with a scale of its own, multiplied by how far the run is behind the best one:

- a part shared by all runs at the same step and rate: Matern-1/2 (independent increments) in log step and log rate. It
  holds the errors of the law's form, and grows away from the observations;
- a part of one run: a constant (its luck), and an Ornstein-Uhlenbeck process in log steps. The process is as large as
  the run moves fast: a run that is ahead in time is ahead by a slope. Forks share it with their parents up to the fork,
  and forget it along the tree;
- beyond the last observed step, an error proportional to the progress still to be made;
- noise of each observation.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from paceline.model.law.settings import MISFIT

# Priors of the log scales; see `MisfitSettings`.
CENTRE = np.log(MISFIT.scale_centre)
SPREAD = np.array(MISFIT.scale_spread)
SPAN_POWERS = np.array(MISFIT.span_powers)
NOISE = 6  # index of the scale of the noise


@dataclass(frozen=True, slots=True, eq=False)
class ResidualPoints:
    """Points at which residuals are compared.

    Args:
        log_step, log10_lr: log step and log10 rate.
        speed: of the run, in units of a typical one.
        behind: how far the run is behind the best one, at least 1.
        ahead: relative progress since the last observed step of any run; 0 before it.
        run, task: numbers of the run and of its task.
    """

    log_step: Float[np.ndarray, "rows"]
    log10_lr: Float[np.ndarray, "rows"]
    speed: Float[np.ndarray, "rows"]
    behind: Float[np.ndarray, "rows"]
    ahead: Float[np.ndarray, "rows"]
    run: np.ndarray
    task: np.ndarray


def prior_centre(span: float) -> Float[np.ndarray, "7"]:
    """Centre of the prior of the log scales, for losses whose logs have this deviation."""
    return CENTRE + SPAN_POWERS * np.log(span)


@dataclass(frozen=True, slots=True, eq=False)
class PointPairs:
    """Pairs of points, as far as their covariance does not depend on the scales: a fit needs it hundreds of times.

    Args:
        step_gap, rate_gap: squared distances in log step and log10 rate.
        shared, ahead: weights of the shared part and of the error of progress.
        related: indices of the pairs on related runs, in the order of the matrix.
        luck, own: weights of the parts of one run, for these pairs.
        tree_distance: distance along the tree of forks, in log steps, for these pairs.
    """

    step_gap: Float[np.ndarray, "rows others"]
    rate_gap: Float[np.ndarray, "rows others"]
    shared: Float[np.ndarray, "rows others"]
    ahead: Float[np.ndarray, "rows others"]
    related: Int[np.ndarray, "pairs"]
    luck: Float[np.ndarray, "pairs"]
    own: Float[np.ndarray, "pairs"]
    tree_distance: Float[np.ndarray, "pairs"]

    @classmethod
    def of(
        cls,
        one: ResidualPoints,
        other: ResidualPoints,
        shared_until: Float[np.ndarray, "runs runs"],
        correlation: Float[np.ndarray, "tasks tasks"],
    ) -> "PointPairs":
        """All pairs of a point of `one` and a point of `other`; arguments as in `covariance`."""
        behind = np.outer(one.behind, other.behind)
        in_step = np.subtract.outer(one.log_step, other.log_step)
        in_rate = np.subtract.outer(one.log10_lr, other.log10_lr)
        until = shared_until[np.ix_(one.run, other.run)].ravel()
        related = np.flatnonzero(until > -np.inf)
        first, second = np.divmod(related, len(other.log_step))
        least = np.minimum(one.log_step[first], other.log_step[second])
        # Between two branches, the distance leads back to where they parted.
        distance = np.abs(in_step.ravel()[related]) + 2 * np.maximum(least - until[related], 0.0)
        luck = behind.ravel()[related]
        return cls(
            step_gap=in_step**2,
            rate_gap=in_rate**2,
            shared=behind * correlation[np.ix_(one.task, other.task)],
            ahead=behind * np.outer(MISFIT.extrapolation * one.ahead, MISFIT.extrapolation * other.ahead),
            related=related,
            luck=luck,
            own=luck * one.speed[first] * other.speed[second],
            tree_distance=distance,
        )

    def covariance(self, log_scales: Float[np.ndarray, "7"]) -> Float[np.ndarray, "rows others"]:
        """Covariance of the residuals without noise."""
        shared, step_length, rate_length, luck, own, length, _ = np.exp(log_scales)
        gap = np.sqrt(self.step_gap / step_length**2 + self.rate_gap / rate_length**2)
        total = shared**2 * self.shared * np.exp(-gap) + self.ahead
        total.ravel()[self.related] += luck**2 * self.luck + own**2 * self.own * np.exp(-self.tree_distance / length)
        return total


def covariance(
    log_scales: Float[np.ndarray, "7"],
    one: ResidualPoints,
    other: ResidualPoints,
    shared_until: Float[np.ndarray, "runs runs"],
    correlation: Float[np.ndarray, "tasks tasks"],
) -> Float[np.ndarray, "rows others"]:
    """Covariance of the residuals without noise.

    Args:
        log_scales: of the parts.
        one: points.
        other: further points.
        shared_until: log of the step until which two runs were the same.
        correlation: between tasks, of the shared part.
    """
    return PointPairs.of(one, other, shared_until, correlation).covariance(log_scales)
