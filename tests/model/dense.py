"""The posterior of a trace model at some points, with dense matrices."""

import numpy as np
import torch

from paceline.model.posterior import Posterior
from tests import reference


def posterior_at(posterior: Posterior, z: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of f at points, first latent, written out."""
    hyper, lengthscales = posterior.hyper, posterior.hyper.log_lengthscales[0].exp().numpy()
    variance, inducing, points = float(hyper.variance[0]), posterior.inducing.numpy(), z.numpy()
    kzz = reference.matern52(inducing, inducing, variance, lengthscales) + 1e-6 * variance * np.eye(len(inducing))
    w = np.linalg.solve(np.linalg.cholesky(kzz), reference.matern52(inducing, points, variance, lengthscales))
    cov = reference.matern52(points, points, variance, lengthscales) - w.T @ posterior.shrinkage[0].numpy() @ w
    return float(hyper.mean[0]) + w.T @ posterior.whitened_mean[0].numpy(), cov
