"""What the law misses: a Gaussian process on the relative residual, loss / law - 1.

Four parts, each with a scale of its own, multiplied by how far behind the best a run is:

- shared by all runs at the same step and rate: Matern-1/2 (independent increments) in log step and log rate. It holds
  what the form of the law gets wrong, and grows away from what was observed;
- of one run: a constant (its luck), and an Ornstein-Uhlenbeck process in log steps, as large as the run moves fast (a
  run that is ahead in time is ahead by a slope). Forks share it with their parents up to where they were cloned, and
  forget it along the tree;
- beyond the last step seen, an error proportional to the progress still to be made;
- noise of each observation.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

AHEAD = 0.2  # relative error of progress beyond the last step seen
STEADY = 0.2  # least speed of a run that its own process scales with, in units of a typical one
# priors of the log scales: shared, its lengths in log step and log10 rate, luck, own, its length in log steps, and the
# noise in units of second differences. Shared, luck and own go with a power of how much the loss has moved.
CENTRE = np.log([0.3, 1.0, 1.0, 0.003, 0.02, 0.3, 1.3])
SPREAD = np.array([0.17, 0.2, 0.2, 0.7, 0.7, 0.5, 0.3])
IN_SPANS = np.array([1.5, 0, 0, 1, 1, 0, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where residuals are looked at: log step, log10 rate, speed in units of a typical one, weight, run and task.

    `ahead` is the progress to be made since the last step that any run was seen at, 0 up to there.
    """

    log_step: Float[np.ndarray, "rows"]
    log10_lr: Float[np.ndarray, "rows"]
    speed: Float[np.ndarray, "rows"]
    behind: Float[np.ndarray, "rows"]
    ahead: Float[np.ndarray, "rows"]
    run: np.ndarray
    task: np.ndarray


def prior_centre(span: float) -> Float[np.ndarray, "7"]:
    """Centre of the prior of the log scales."""
    return CENTRE + IN_SPANS * np.log(span)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of places, as far as their covariance does not depend on the scales: a fit asks for it hundreds of times.

    Args:
        in_step, in_rate: squared distances in log step and log10 rate.
        shared, ahead: weights of the part that all runs share and of the error of progress.
        related: numbers of the pairs on runs that have something in common, in the order of the matrix.
        luck, own: weights of the parts of one run, for these pairs.
        way: distance along the tree of forks, in log steps, for these pairs.
    """

    in_step: Float[np.ndarray, "rows others"]
    in_rate: Float[np.ndarray, "rows others"]
    shared: Float[np.ndarray, "rows others"]
    ahead: Float[np.ndarray, "rows others"]
    related: Int[np.ndarray, "pairs"]
    luck: Float[np.ndarray, "pairs"]
    own: Float[np.ndarray, "pairs"]
    way: Float[np.ndarray, "pairs"]

    @classmethod
    def of(
        cls,
        one: Places,
        other: Places,
        splits: Float[np.ndarray, "runs runs"],
        alike: Float[np.ndarray, "tasks tasks"],
    ) -> "Pairs":
        """Pairs of one place here and one there; arguments as in `covariance`."""
        behind = np.outer(one.behind, other.behind)
        in_step = np.subtract.outer(one.log_step, other.log_step)
        in_rate = np.subtract.outer(one.log10_lr, other.log10_lr)
        until = splits[np.ix_(one.run, other.run)].ravel()
        related = np.flatnonzero(until > -np.inf)
        first, second = np.divmod(related, len(other.log_step))
        least = np.minimum(one.log_step[first], other.log_step[second])
        # on different branches the way leads over the point where they parted
        way = np.abs(in_step.ravel()[related]) + 2 * np.maximum(least - until[related], 0.0)
        luck = behind.ravel()[related]
        return cls(
            in_step**2,
            in_rate**2,
            behind * alike[np.ix_(one.task, other.task)],
            behind * np.outer(AHEAD * one.ahead, AHEAD * other.ahead),
            related,
            luck,
            luck * one.speed[first] * other.speed[second],
            way,
        )

    def covariance(self, log_scales: Float[np.ndarray, "7"]) -> Float[np.ndarray, "rows others"]:
        """Covariance of residuals without the noise."""
        shared, in_step, in_rate, luck, own, length, _ = np.exp(log_scales)
        gap = np.sqrt(self.in_step / in_step**2 + self.in_rate / in_rate**2)
        total = shared**2 * self.shared * np.exp(-gap) + self.ahead
        total.ravel()[self.related] += luck**2 * self.luck + own**2 * self.own * np.exp(-self.way / length)
        return total


def covariance(
    log_scales: Float[np.ndarray, "7"],
    one: Places,
    other: Places,
    splits: Float[np.ndarray, "runs runs"],
    alike: Float[np.ndarray, "tasks tasks"],
) -> Float[np.ndarray, "rows others"]:
    """Covariance of residuals without the noise.

    Args:
        log_scales: of the parts.
        one: where.
        other: and where.
        splits: log of the step until which two runs were one.
        alike: correlation between tasks of what is shared.
    """
    return Pairs.of(one, other, splits, alike).covariance(log_scales)
