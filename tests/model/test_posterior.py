"""The inference engine against exact Gaussian processes."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from paceline.model import link_of
from paceline.model.likelihood import TraceLikelihood
from paceline.model.posterior import Posterior, farthest_points
from paceline.model.sites import Projection, RowPosterior, Sites, solve_sites
from tests import reference
from tests.model.example_intervals import UNIT, dense_prior, hyperparameters, interval


def test_a_gaussian_likelihood_gives_the_exact_posterior_and_evidence(rng: np.random.Generator) -> None:
    n, noise = 12, 0.1
    z = rng.uniform(size=(n, 2))
    y = rng.normal(size=n)
    hyper = hyperparameters(1, 2, rng)

    def likelihood(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        gap = (mean[0] - torch.from_numpy(y)).square() + variance[0]
        return -0.5 * (gap / noise + np.log(2 * np.pi * noise)).sum()

    prior = Projection.of(hyper, torch.from_numpy(z), torch.from_numpy(z))
    sites, bound = solve_sites(prior, Sites.none(1, n), likelihood, tolerance=1e-10)
    cov, _, _ = dense_prior(hyper, z, z, 0)
    evidence = reference.multivariate_normal(np.full(n, float(hyper.mean[0])), cov + noise * np.eye(n)).logpdf(y)
    assert bound == pytest.approx(evidence, rel=1e-4)
    posterior = Posterior.of(prior, torch.from_numpy(z), sites, bound)
    fresh = rng.uniform(size=(5, 2))
    lengthscales = hyper.log_lengthscales[0].exp().numpy()
    joint = np.concatenate([z, fresh])
    k = reference.matern52(joint, joint, float(hyper.variance[0]), lengthscales)
    k[:n, :n] += (float(hyper.nugget[0]) + noise) * np.eye(n)
    mean, conditional = reference.condition(np.full(n + 5, float(hyper.mean[0])), k, np.arange(n), y)
    actual_mean, actual_variance = posterior.marginal(torch.from_numpy(fresh))
    np.testing.assert_allclose(actual_mean[0].numpy(), mean[n:], atol=1e-4)
    np.testing.assert_allclose(actual_variance[0].numpy(), np.diag(conditional)[n:], atol=1e-4)


def test_more_inducing_points_never_lower_the_bound(rng: np.random.Generator) -> None:
    n = 20
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        interval(np.linspace(0.1, 1, 9), abs(rng.normal()) * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9))
        for _ in range(n)
    ]
    likelihood, hyper = TraceLikelihood.of(segments, link_of("linear"), UNIT), hyperparameters(1, 2, rng)
    bounds = [solve_sites(Projection.of(hyper, z, z[:m]), Sites.none(1, n), likelihood)[1] for m in (2, 5, 10, 20)]
    assert all(b >= a - 1e-3 for a, b in pairwise(bounds))


def test_the_envelope_gradient_is_the_gradient_of_the_profiled_bound(rng: np.random.Generator) -> None:
    n = 8
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        interval(np.linspace(0.1, 1, 9), 0.4 * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9)) for _ in range(n)
    ]
    likelihood, hyper = TraceLikelihood.of(segments, link_of("exponential"), UNIT), hyperparameters(2, 2, rng)

    def profile(vector: torch.Tensor) -> tuple[float, Sites]:
        prior = Projection.of(hyper.with_free(vector), z, z[:5])
        sites, bound = solve_sites(prior, Sites.none(2, n), likelihood, tolerance=1e-12, steps=500)
        return bound, sites

    vector = hyper.free()
    sites = profile(vector)[1]
    free = vector.clone().requires_grad_()
    rows = RowPosterior.of(Projection.of(hyper.with_free(free), z, z[:5]), sites)
    assert rows is not None
    (gradient,) = torch.autograd.grad(likelihood(rows.mean, rows.variance) - rows.kl, free)
    for i in range(len(vector)):
        step = torch.zeros_like(vector)
        step[i] = 1e-4
        slope = (profile(vector + step)[0] - profile(vector - step)[0]) / 2e-4
        assert float(gradient[i]) == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_farthest_points_cover_and_skip_duplicates() -> None:
    z = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]).double()
    assert farthest_points(z, 2).tolist() == [0, 2]
    assert farthest_points(z, 10).tolist() == [0, 2, 3]
