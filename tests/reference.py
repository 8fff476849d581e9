"""The slow, obvious versions of what the package computes fast. Numpy and dense matrices, no cleverness."""

from itertools import product

import numpy as np
import torch
from scipy.stats import multivariate_normal

from paceline.model import Link
from paceline.traces import Schedule


def gauss_hermite(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return z, w / w.sum()


def expected_log_likelihood(
    link: Link,
    elapsed: np.ndarray,
    residuals: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    noise: float,
    *,
    anchor_noise: bool,
    nodes: tuple[int, ...] = (),
) -> float:
    """E log N(r | eta(f, t), noise (I + 11')) of one interval, on all of its observations, by tensor quadrature."""
    n = len(residuals)
    cov = noise * (np.eye(n) + (np.ones((n, n)) if anchor_noise else 0.0))
    default = {1: (20,), 2: (20, 8), 3: (20, 8, 8), 4: (20, 6, 6, 6)}[link.latents]
    rules = [gauss_hermite(size) for size in nodes or default]
    z = np.array(list(product(*(z for z, _ in rules))))
    weights = np.array([np.prod(w) for w in product(*(w for _, w in rules))])
    f = torch.from_numpy((mean + np.sqrt(variance) * z).T[..., None])
    eta = link(f, torch.from_numpy(elapsed)).expand(len(z), n).numpy()
    return float(weights @ np.atleast_1d(multivariate_normal(np.zeros(n), cov).logpdf(residuals - eta)))


def matern52(a: np.ndarray, b: np.ndarray, variance: float, lengthscales: np.ndarray) -> np.ndarray:
    """Product of Matern-5/2 kernels, one input at a time."""
    k = np.full((len(a), len(b)), variance)
    for d, lengthscale in enumerate(lengthscales):
        r = np.sqrt(5) * np.abs(a[:, None, d] - b[None, :, d]) / lengthscale
        k *= (1 + r + r**2 / 3) * np.exp(-r)
    return k


def multitask(
    z: np.ndarray,
    variance: float,
    lengthscales: np.ndarray,
    embedding: np.ndarray,
    coordinates: "np.ndarray | None" = None,
    coordinate_lengthscales: "np.ndarray | None" = None,
) -> np.ndarray:
    """k_Y k_x k_w k_c among inputs whose last column is the number of a task."""
    task = z[:, -1].astype(int)
    w = embedding[task]
    r = np.sqrt(5) * np.linalg.norm(w[:, None] - w[None], axis=-1)
    k = matern52(z, z, variance, lengthscales) * (1 + r + r**2 / 3) * np.exp(-r)
    if coordinates is None or coordinate_lengthscales is None:
        return k
    return k * matern52(coordinates[task], coordinates[task], 1.0, coordinate_lengthscales)


def observed_through_sites(
    mean: np.ndarray, cov: np.ndarray, a: np.ndarray, b: np.ndarray, effect: float
) -> tuple[np.ndarray, np.ndarray]:
    """A process f given sites exp(a h - b h^2 / 2) on h = f + a random effect, at the first of its points."""
    n = len(a)
    prior = cov[:n, :n] + effect * np.eye(n)
    location, spread, _ = gaussian_times_sites(mean[:n], prior, a, b)
    gain = np.linalg.solve(prior, cov[:n]).T
    return mean + gain @ (location - mean[:n]), cov - gain @ cov[:n] + gain @ spread @ gain.T


def gaussian_times_sites(
    mean: np.ndarray, cov: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of N(mean, cov) prod exp(a h - b h^2 / 2), normalised, and its KL from N(mean, cov)."""
    precision = np.linalg.inv(cov)
    posterior = np.linalg.inv(precision + np.diag(b))
    location = posterior @ (precision @ mean + a)
    gap = location - mean
    kl = 0.5 * (
        np.trace(precision @ posterior)
        + gap @ precision @ gap
        - len(mean)
        + np.linalg.slogdet(cov)[1]
        - np.linalg.slogdet(posterior)[1]
    )
    return location, posterior, float(kl)


def condition(
    mean: np.ndarray, cov: np.ndarray, seen: np.ndarray, values: np.ndarray, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a joint Gaussian given values (with noise) of some of its components."""
    gram = cov[np.ix_(seen, seen)] + noise * np.eye(len(seen))
    gain = np.linalg.solve(gram, cov[seen]).T
    return mean + gain @ (values - mean[seen]), cov - gain @ cov[seen]


def state_of_a_run(
    schedule: Schedule, steps: np.ndarray, exponent: float, reference: float, speeds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S and the modes N of the law, one update after the other; the last mode follows v at once."""
    s, n, rows = 0.0, np.zeros(len(speeds)), []
    for update in range(int(steps[-1])):
        lr = schedule(update)
        v = (lr / reference) ** exponent
        s, n = s + lr, v + (n - v) * np.exp(-speeds * lr)
        rows.append([s, *n, v])
    found = np.array(rows)[steps - 1]
    return found[:, 0], found[:, 1:]


def nonnegative(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """argmin over c >= 0 of c' matrix c / 2 - vector' c: try every set of coefficients that are not zero."""
    size, best, found = len(vector), 0.0, np.zeros(len(vector))
    for inside in product((False, True), repeat=size):
        on = np.flatnonzero(inside)
        c = np.zeros(size)
        c[on] = np.linalg.solve(matrix[np.ix_(on, on)], vector[on])
        value = 0.5 * c @ matrix @ c - vector @ c
        if c.min() >= 0 and value < best:
            best, found = value, c
    return found
