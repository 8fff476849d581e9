"""Which rates are likely to fail: a Gaussian process classifier on (Y, x), on the same engine as the trace model.

P(fail | z) = E Phi(f(z)), with E log Phi(y f) by Gauss-Hermite nodes as its expected log likelihood.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.kernels import Hyperparameters
from paceline.model.linalg import log_normal_cdf, normal_cdf, tensor
from paceline.model.posterior import Posterior, Sites, farthest_points, fit_posterior
from paceline.model.quadrature import expectation
from paceline.traces import Segment

PRIOR_MEAN = torch.tensor([-1.3], dtype=torch.float64)  # before any label, one interval in ten is expected to fail


@dataclass(frozen=True, slots=True, eq=False)
class ProbitLikelihood:
    """E log Phi(y f) summed over labels y = +1 (failed) or -1."""

    signs: Float[Tensor, "n"]

    def __call__(self, mean: Float[Tensor, "1 n"], variance: Float[Tensor, "1 n"]) -> Float[Tensor, ""]:
        """Total over the labels."""
        return expectation(lambda f: log_normal_cdf(self.signs[:, None] * f), mean[0], variance[0]).sum()


@dataclass(frozen=True, slots=True, eq=False)
class FailureModel:
    """Probability that an interval fails, given where it starts and its rate.

    >>> model = FailureModel.fit(np.array([[0.5, 0.1], [0.5, 0.2], [0.5, 0.9]]), np.array([False, False, True]))
    >>> bool(model.probability(np.array([[0.5, 0.95]]))[0] > model.probability(np.array([[0.5, 0.15]]))[0])
    True
    """

    posterior: Posterior

    @classmethod
    def fit(
        cls,
        inputs: Float[np.ndarray, "n d"],
        failed: Bool[np.ndarray, "labels"],
        *,
        inducing: int = 150,
        start: "FailureModel | None" = None,
    ) -> "FailureModel":
        """Fit to labelled intervals.

        Args:
            inputs: one row (Y, x) per interval, scaled to about [0, 1].
            failed: which of them failed.
            inducing: most inducing points.
            start: an earlier model of the first rows, to start warm from.
        """
        if len(inputs) == 0 or len(inputs) != len(failed):
            raise InputError(
                f"expected one label per row and at least one row, got {len(inputs)} rows and {len(failed)} labels"
            )
        if not np.isfinite(inputs).all():
            raise InputError("inputs must be finite: leave out intervals whose start value is not")
        z = tensor(inputs)
        likelihood = ProbitLikelihood(tensor(np.where(failed, 1.0, -1.0)))
        if start is None:
            hyper = Hyperparameters.start(PRIOR_MEAN, z.shape[1], nugget=False)
            sites = Sites.none(1, len(z))
        else:
            hyper = start.posterior.hyper
            known = start.posterior.sites
            if known.a.shape[1] > len(z):
                raise InputError(
                    f"start must be a model of the first of these {len(z)} rows, got one of {known.a.shape[1]}"
                )
            sites = known.concat(Sites.none(1, len(z) - known.a.shape[1]))
        return cls(
            fit_posterior(
                z, likelihood, hyper, sites, inducing=farthest_points(z, inducing), centre=PRIOR_MEAN, most=30
            )
        )

    def probability(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """P(fail) = Phi(mu / sqrt(1 + Sigma))."""
        mean, variance = self.posterior.marginal(tensor(inputs))
        return normal_cdf(mean[0] / (1 + variance[0]).sqrt()).numpy()


def failed_intervals(segments: Sequence[Segment], noise: float) -> Bool[np.ndarray, "n"]:
    """Which intervals count as failed: diverged, spiked, or ended worse than they began by over 3 deviations.

    `noise` is the standard deviation of one observation, in the model's units.
    """
    worse = np.array([len(s.residuals) > 0 and s.residuals[-1] < -3 * noise for s in segments], dtype=bool)
    return worse | np.array([s.failed for s in segments], dtype=bool)
