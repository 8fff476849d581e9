"""The failure model: which rates are likely to fail, by a Gaussian process classifier on (Y, x).

It runs on the engine of the trace model. P(fail | z) = E Phi(f(z)); its expected log likelihood is E log Phi(y f), by
Gauss-Hermite quadrature.
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
from paceline.model.posterior import Posterior, farthest_points, fit_posterior
from paceline.model.quadrature import expectation
from paceline.model.settings import INFERENCE
from paceline.model.sites import Sites
from paceline.traces import Segment

PRIOR_MEAN = torch.tensor([INFERENCE.failure_mean], dtype=torch.float64)
WORSE = 3.0  # deviations of the noise by which an interval has to end worse than it began to count as failed


@dataclass(frozen=True, slots=True, eq=False)
class ProbitLikelihood:
    """E log Phi(y f), summed over labels y = +1 (failed) or -1."""

    signs: Float[Tensor, "n"]

    def __call__(self, mean: Float[Tensor, "1 n"], variance: Float[Tensor, "1 n"]) -> Float[Tensor, ""]:
        """Total over the labels."""
        return expectation(lambda f: log_normal_cdf(self.signs[:, None] * f), mean[0], variance[0]).sum()


@dataclass(frozen=True, slots=True, eq=False)
class FailureModel:
    """Probability that an interval fails, given its start value and its rate.

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
            start: a model of the first of these rows, to start from.
        """
        if len(inputs) == 0 or len(inputs) != len(failed):
            raise InputError(
                f"expected one label per row and at least one row, got {len(inputs)} rows and {len(failed)} labels: "
                "pass as many labels as rows"
            )
        if not np.isfinite(inputs).all():
            raise InputError("inputs must be finite, got nan or inf: drop intervals without a finite start value")
        z = tensor(inputs)
        likelihood = ProbitLikelihood(tensor(np.where(failed, 1.0, -1.0)))
        if start is None:
            hyper = Hyperparameters.start(PRIOR_MEAN, z.shape[1], nugget=False)
            sites = Sites.none(1, len(z))
        else:
            hyper, count = start.posterior.hyper, start.posterior.sites.a.shape[1]
            if count > len(z):
                raise InputError(
                    f"start must be a model of the first of these {len(z)} rows, got one of {count}: pass all rows"
                )
            sites = start.posterior.sites.concat(Sites.none(1, len(z) - count))
        posterior = fit_posterior(
            z,
            likelihood,
            hyper,
            sites,
            inducing=farthest_points(z, inducing),
            centre=PRIOR_MEAN,
            iterations=INFERENCE.failure_iterations,
        )
        return cls(posterior)

    def probability(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """P(fail) = Phi(mu / sqrt(1 + Sigma))."""
        mean, variance = self.posterior.marginal(tensor(inputs))
        return normal_cdf(mean[0] / (1 + variance[0]).sqrt()).numpy()


def failed_intervals(segments: Sequence[Segment], noise: float) -> Bool[np.ndarray, "n"]:
    """Which intervals failed: those that diverged or spiked, and those that ended clearly worse than they began.

    Args:
        segments: the intervals.
        noise: standard deviation of one observation, in the model's units.
    """
    worse = np.array([len(s.residuals) > 0 and s.residuals[-1] < -WORSE * noise for s in segments], dtype=bool)
    return worse | np.array([s.failed for s in segments], dtype=bool)
