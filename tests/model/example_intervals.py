"""Intervals, hyperparameters and dense priors for tests of the engine."""

import numpy as np
import torch

from paceline import LearningRateRange
from paceline.model.kernels import Hyperparameters
from paceline.model.settings import INFERENCE
from paceline.traces import Moments, Scaling, Segment
from tests import reference

UNIT = Scaling(0.0, 1.0, 1.0, LearningRateRange(0.1, 1.0))


def interval(elapsed: np.ndarray, residuals: np.ndarray) -> Segment:
    """An interval with these observations."""
    moments = Moments().append(elapsed, residuals)
    return Segment("", "", 0, 1, (0.0,), (0.0,), elapsed, residuals, moments, failed=False, first=True)


def hyperparameters(p: int, inputs: int, rng: np.random.Generator, *, nugget: bool = True) -> Hyperparameters:
    """Random hyperparameters."""
    start = Hyperparameters.start(torch.zeros(p).double(), inputs, nugget=nugget)
    return start.with_free(start.free() + 0.3 * torch.from_numpy(rng.standard_normal(len(start.free()))))


def dense_prior(
    hyper: Hyperparameters, z: np.ndarray, inducing: np.ndarray, latent: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of h = W'v + xi, covariance of W'v, and the slack, of one latent."""
    variance = float(hyper.variance[latent])
    lengthscales = hyper.log_lengthscales[latent].exp().numpy()
    jitter = INFERENCE.jitter * variance * np.eye(len(inducing))
    kzz = reference.matern52(inducing, inducing, variance, lengthscales) + jitter
    kzx = reference.matern52(inducing, z, variance, lengthscales)
    q = kzx.T @ np.linalg.solve(kzz, kzx)
    return q + float(hyper.nugget[latent]) * np.eye(len(z)), q, np.maximum(variance - np.diag(q), 0.0)
