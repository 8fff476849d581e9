"""Plain Gaussian process regression for peers that need one: a few dozen points, hyperparameters on a grid.

With K = Q diag(l) Q' and noise ratio r, the variance that maximises the marginal likelihood is known,
s^2 = mean((Q'y)^2 / (l + r)), and log p(y) = -n/2 log s^2 - 1/2 sum log(l + r) + constant: one factorisation per kernel
serves every noise. The maximum over a grid depends on nothing but the data, so decisions repeat exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

NOISES = np.geomspace(1e-4, 3.0, 10)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The kernel (its place in the list), variance and noise ratio of largest marginal likelihood."""

    kernel: int
    variance: float
    noise: float


def fit(grams: Sequence[Float[np.ndarray, "n n"]], y: Float[np.ndarray, "n"]) -> Fitted:
    """Choose among kernels of unit variance, given their matrices at the data."""
    best, highest = Fitted(0, 1.0, 1.0), -np.inf
    for i, gram in enumerate(grams):
        values, vectors = np.linalg.eigh(gram)
        spectrum = np.maximum(values, 0.0)[:, None] + NOISES
        variance = ((vectors.T @ y)[:, None] ** 2 / spectrum).mean(0) + 1e-12
        likelihood = -0.5 * (len(y) * np.log(variance) + np.log(spectrum).sum(0))
        j = int(np.argmax(likelihood))
        if likelihood[j] > highest:
            best, highest = Fitted(i, float(variance[j]), float(NOISES[j])), likelihood[j]
    return best


def mean_at(
    gram: Float[np.ndarray, "n n"], cross: Float[np.ndarray, "n m"], y: Float[np.ndarray, "n"], noise: float
) -> Float[np.ndarray, "m"]:
    """Posterior mean K*' (K + noise I)^-1 y."""
    return cross.T @ np.linalg.solve(gram + noise * np.eye(len(gram)), y)


def variance_at(
    gram: Float[np.ndarray, "n n"], cross: Float[np.ndarray, "n m"], noise: float
) -> Float[np.ndarray, "m"]:
    """Posterior variance 1 - diag(K*' (K + noise I)^-1 K*), for a kernel of unit variance."""
    explained = (cross * np.linalg.solve(gram + noise * np.eye(len(gram)), cross)).sum(0)
    return np.maximum(1.0 - explained, 1e-12)
