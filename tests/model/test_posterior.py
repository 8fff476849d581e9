"""The inference engine against dense matrices."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.failure import ProbitLikelihood
from paceline.model.kernels import Hyperparameters, covariance
from paceline.model.likelihood import TraceLikelihood
from paceline.model.links import link_of
from paceline.model.posterior import (
    JITTER,
    Beliefs,
    Posterior,
    Projection,
    Sites,
    farthest_points,
    fit_posterior,
    solve_sites,
)
from tests import reference
from tests.model.test_likelihood import ONE, segment


def hyperparameters(p: int, inputs: int, rng: np.random.Generator, *, nugget: bool = True) -> Hyperparameters:
    start = Hyperparameters.start(torch.zeros(p).double(), inputs, nugget=nugget)
    return start.moved(start.free() + 0.3 * torch.from_numpy(rng.standard_normal(len(start.free()))))


def dense_prior(
    hyper: Hyperparameters, z: np.ndarray, inducing: np.ndarray, latent: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of h = W'v + xi and the slack, one latent."""
    variance = float(hyper.variance[latent])
    lengthscales = hyper.log_lengthscales[latent].exp().numpy()
    kzz = reference.matern52(inducing, inducing, variance, lengthscales) + JITTER * variance * np.eye(len(inducing))
    kzx = reference.matern52(inducing, z, variance, lengthscales)
    q = kzx.T @ np.linalg.solve(kzz, kzx)
    return q + float(hyper.nugget[latent]) * np.eye(len(z)), q, np.maximum(variance - np.diag(q), 0.0)


@given(p=st.integers(1, 2), m=st.integers(2, 8), seed=st.integers(0, 2**32 - 1))
def test_beliefs_agree_with_dense_matrices(p: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    z = rng.uniform(size=(n, 2))
    hyper = hyperparameters(p, 2, rng)
    a, b = rng.normal(size=(p, n)), rng.uniform(-0.1, 3.0, size=(p, n))
    prior = Projection.of(hyper, torch.from_numpy(z), torch.from_numpy(z[:m]))
    beliefs = Beliefs.of(prior, Sites(torch.from_numpy(a), torch.from_numpy(b)))
    if beliefs is None:
        return
    kl = 0.0
    for i in range(p):
        cov, _, slack = dense_prior(hyper, z, z[:m], i)
        mean, posterior, divergence = reference.gaussian_times_sites(np.full(n, float(hyper.mean[i])), cov, a[i], b[i])
        np.testing.assert_allclose(beliefs.mean[i].numpy(), mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(beliefs.variance[i].numpy(), np.diag(posterior) + slack, rtol=1e-6, atol=1e-8)
        kl += divergence
    assert float(beliefs.kl) == pytest.approx(kl, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", ["linear", "exponential", "signed"])
def test_the_bound_is_the_same_on_all_observations_by_brute_force(name: str, rng: np.random.Generator) -> None:
    link, n = link_of(name), 6
    z = rng.uniform(size=(n, 2))
    segments = [segment(np.linspace(0.1, 1, 7), 0.3 * np.linspace(0.1, 1, 7) + rng.normal(0, 0.1, 7)) for _ in range(n)]
    likelihood = TraceLikelihood.of(segments, link, ONE)
    hyper = hyperparameters(link.latents, 2, rng)
    prior = Projection.of(hyper, torch.from_numpy(z), torch.from_numpy(z[:4]))
    sites, bound = solve_sites(prior, Sites.none(link.latents, n), likelihood)
    beliefs = Beliefs.of(prior, sites)
    assert beliefs is not None
    mean, variance, kl = np.zeros((link.latents, n)), np.zeros((link.latents, n)), 0.0
    for i in range(link.latents):
        cov, _, slack = dense_prior(hyper, z, z[:4], i)
        mean[i], posterior, divergence = reference.gaussian_times_sites(
            np.full(n, float(hyper.mean[i])), cov, sites.a[i].numpy(), sites.b[i].numpy()
        )
        variance[i], kl = np.diag(posterior) + slack, kl + divergence
    noise = float(likelihood.noise(torch.from_numpy(mean), torch.from_numpy(variance)))
    slow = sum(
        reference.expected_log_likelihood(
            link, s.elapsed, s.residuals, mean[:, i], variance[:, i], noise, anchor_noise=True
        )
        for i, s in enumerate(segments)
    )
    assert bound == pytest.approx(slow - kl, rel=1e-6)


@pytest.mark.parametrize("name", ["linear", "exponential", "power"])
def test_solved_sites_are_a_maximum(name: str, rng: np.random.Generator) -> None:
    link, n = link_of(name), 6
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        segment(np.linspace(0.1, 1, 9), 0.3 * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9)) for _ in range(n)
    ]
    likelihood = TraceLikelihood.of(segments, link, ONE)
    prior = Projection.of(hyperparameters(link.latents, 2, rng), z, z)
    sites, best = solve_sites(prior, Sites.none(link.latents, n), likelihood, tolerance=1e-10)
    for _ in range(30):
        shake = [torch.from_numpy(rng.normal(0, 0.05, (link.latents, n))) for _ in range(2)]
        moved = Sites(sites.a + shake[0] * (1 + sites.a.abs()), sites.b + shake[1] * (1 + sites.b.abs()))
        beliefs = Beliefs.of(prior, moved)
        if beliefs is not None:
            assert float(likelihood(beliefs.mean, beliefs.variance) - beliefs.kl) <= best + 1e-6


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
    got_mean, got_variance = posterior.marginal(torch.from_numpy(fresh))
    np.testing.assert_allclose(got_mean[0].numpy(), mean[n:], atol=1e-4)
    np.testing.assert_allclose(got_variance[0].numpy(), np.diag(conditional)[n:], atol=1e-4)


def test_more_inducing_points_never_lower_the_bound(rng: np.random.Generator) -> None:
    n = 20
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        segment(np.linspace(0.1, 1, 9), abs(rng.normal()) * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9))
        for _ in range(n)
    ]
    likelihood, hyper = TraceLikelihood.of(segments, link_of("linear"), ONE), hyperparameters(1, 2, rng)
    bounds = [solve_sites(Projection.of(hyper, z, z[:m]), Sites.none(1, n), likelihood)[1] for m in (2, 5, 10, 20)]
    assert all(b >= a - 1e-3 for a, b in pairwise(bounds))


def test_the_envelope_gradient_is_the_gradient_of_the_profiled_bound(rng: np.random.Generator) -> None:
    n = 8
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        segment(np.linspace(0.1, 1, 9), 0.4 * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9)) for _ in range(n)
    ]
    likelihood, hyper = TraceLikelihood.of(segments, link_of("exponential"), ONE), hyperparameters(2, 2, rng)

    def profile(vector: torch.Tensor) -> tuple[float, Sites]:
        prior = Projection.of(hyper.moved(vector), z, z[:5])
        sites, bound = solve_sites(prior, Sites.none(2, n), likelihood, tolerance=1e-12, most=500)
        return bound, sites

    vector = hyper.free()
    sites = profile(vector)[1]
    free = vector.clone().requires_grad_()
    beliefs = Beliefs.of(Projection.of(hyper.moved(free), z, z[:5]), sites)
    assert beliefs is not None
    (gradient,) = torch.autograd.grad(likelihood(beliefs.mean, beliefs.variance) - beliefs.kl, free)
    for i in range(len(vector)):
        step = torch.zeros_like(vector)
        step[i] = 1e-4
        slope = (profile(vector + step)[0] - profile(vector - step)[0]) / 2e-4
        assert float(gradient[i]) == pytest.approx(slope, rel=1e-3, abs=1e-3)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # gpytorch's own, on import
def test_kernel_equals_gpytorchs(rng: np.random.Generator) -> None:
    import gpytorch

    hyper = hyperparameters(1, 2, rng)
    a, b = torch.from_numpy(rng.uniform(size=(5, 2))), torch.from_numpy(rng.uniform(size=(7, 2)))
    parts = [gpytorch.kernels.MaternKernel(2.5, active_dims=[d]).double() for d in range(2)]
    for d, part in enumerate(parts):
        part.lengthscale = hyper.log_lengthscales[0, d].exp()
    theirs = hyper.variance[0] * (parts[0] * parts[1])(a, b).to_dense()
    torch.testing.assert_close(covariance(hyper, a, b)[0], theirs.detach())


def test_tasks_multiply_the_kernel(rng: np.random.Generator) -> None:
    start = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=3, dims=2)
    z = torch.tensor([[0.1, 0.2, 0.0], [0.1, 0.2, 1.0], [0.1, 0.2, 2.0]]).double()
    k = covariance(start, z, z)[0]
    w = start.embedding
    r = 5**0.5 * torch.cdist(w, w)
    torch.testing.assert_close(k, start.variance[0] * (1 + r + r.square() / 3) * torch.exp(-r), rtol=1e-9, atol=1e-9)
    alone = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=3, dims=0)
    torch.testing.assert_close(covariance(alone, z, z)[0], alone.variance[0] * torch.eye(3).double())


def test_farthest_points_cover_and_skip_duplicates() -> None:
    z = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]).double()
    assert farthest_points(z, 2).tolist() == [0, 2]
    assert farthest_points(z, 10).tolist() == [0, 2, 3]


def test_the_probit_likelihood_runs_on_the_same_engine_and_agrees_with_quadrature(rng: np.random.Generator) -> None:
    z = torch.from_numpy(rng.uniform(size=(30, 2)))
    signs = torch.where(z[:, 1] > 0.5, 1.0, -1.0).double()
    likelihood = ProbitLikelihood(signs)
    mean, variance = torch.from_numpy(rng.normal(size=(1, 30))), torch.from_numpy(rng.uniform(0.1, 1, (1, 30)))
    nodes, weights = reference.gauss_hermite(60)
    f = mean[0, :, None] + variance[0, :, None].sqrt() * torch.from_numpy(nodes)
    slow = (torch.special.log_ndtr(signs[:, None] * f) * torch.from_numpy(weights)).sum()
    assert float(likelihood(mean, variance)) == pytest.approx(float(slow), rel=1e-6)
    start = Hyperparameters.start(torch.tensor([-1.3]).double(), 2, nugget=False)
    posterior = fit_posterior(
        z, likelihood, start, Sites.none(1, 30), inducing=farthest_points(z, 30), centre=start.mean
    )
    got, _ = posterior.marginal(torch.tensor([[0.5, 0.9], [0.5, 0.1]]).double())
    assert float(got[0, 0]) > 0.5 > -0.5 > float(got[0, 1])
