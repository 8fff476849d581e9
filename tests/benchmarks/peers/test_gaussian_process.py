"""Gaussian process regression on a grid of hyperparameters, against the dense formula."""

import numpy as np

from benchmarks.peers import gaussian_process
from benchmarks.peers.autolrs import matern


def test_it_chooses_by_the_marginal_likelihood() -> None:
    x = np.linspace(0, 1, 30)
    y = np.sin(12 * x)
    grams = [matern(x, x, length) for length in (0.01, 0.3, 30.0)]
    best = gaussian_process.fit(grams, y)
    assert best.kernel == 1
    dense = []
    for gram in grams:
        for noise in gaussian_process.NOISES:
            cov = gram + noise * np.eye(30)
            variance = y @ np.linalg.solve(cov, y) / 30
            dense.append(-0.5 * (30 * np.log(variance) + np.linalg.slogdet(cov)[1]))
    assert best.noise == gaussian_process.NOISES[int(np.argmax(dense)) % len(gaussian_process.NOISES)]
