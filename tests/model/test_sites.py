"""Gaussian sites against dense matrices, and the steps that improve them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.model import link_of
from paceline.model.likelihood import TraceLikelihood
from paceline.model.sites import Projection, RowPosterior, Sites, solve_sites
from tests import reference
from tests.model.example_intervals import UNIT, dense_prior, hyperparameters, interval


@given(p=st.integers(1, 2), m=st.integers(2, 8), seed=st.integers(0, 2**32 - 1))
def test_the_row_posterior_agrees_with_dense_matrices(p: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    z = rng.uniform(size=(n, 2))
    hyper = hyperparameters(p, 2, rng)
    a, b = rng.normal(size=(p, n)), rng.uniform(-0.1, 3.0, size=(p, n))
    prior = Projection.of(hyper, torch.from_numpy(z), torch.from_numpy(z[:m]))
    rows = RowPosterior.of(prior, Sites(torch.from_numpy(a), torch.from_numpy(b)))
    if rows is None:
        return
    kl = 0.0
    for i in range(p):
        cov, _, slack = dense_prior(hyper, z, z[:m], i)
        mean, posterior, divergence = reference.gaussian_times_sites(np.full(n, float(hyper.mean[i])), cov, a[i], b[i])
        np.testing.assert_allclose(rows.mean[i].numpy(), mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(rows.variance[i].numpy(), np.diag(posterior) + slack, rtol=1e-6, atol=1e-8)
        kl += divergence
    assert float(rows.kl) == pytest.approx(kl, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", ["linear", "exponential", "signed", "pow4"])
def test_the_bound_is_the_same_on_all_observations_by_brute_force(name: str, rng: np.random.Generator) -> None:
    link, n = link_of(name), 6
    z = rng.uniform(size=(n, 2))
    segments = [
        interval(np.linspace(0.1, 1, 7), 0.3 * np.linspace(0.1, 1, 7) + rng.normal(0, 0.1, 7)) for _ in range(n)
    ]
    likelihood = TraceLikelihood.of(segments, link, UNIT)
    hyper = hyperparameters(link.latents, 2, rng)
    prior = Projection.of(hyper, torch.from_numpy(z), torch.from_numpy(z[:4]))
    sites, bound = solve_sites(prior, Sites.none(link.latents, n), likelihood)
    rows = RowPosterior.of(prior, sites)
    assert rows is not None
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


@pytest.mark.parametrize("name", ["linear", "exponential", "power", "hill3"])
def test_solved_sites_are_a_maximum(name: str, rng: np.random.Generator) -> None:
    link, n = link_of(name), 6
    z = torch.from_numpy(rng.uniform(size=(n, 2)))
    segments = [
        interval(np.linspace(0.1, 1, 9), 0.3 * np.linspace(0.1, 1, 9) + rng.normal(0, 0.05, 9)) for _ in range(n)
    ]
    likelihood = TraceLikelihood.of(segments, link, UNIT)
    prior = Projection.of(hyperparameters(link.latents, 2, rng), z, z)
    sites, best = solve_sites(prior, Sites.none(link.latents, n), likelihood, tolerance=1e-10)
    for _ in range(30):
        shake = [torch.from_numpy(rng.normal(0, 0.05, (link.latents, n))) for _ in range(2)]
        shaken = Sites(sites.a + shake[0] * (1 + sites.a.abs()), sites.b + shake[1] * (1 + sites.b.abs()))
        rows = RowPosterior.of(prior, shaken)
        if rows is not None:
            assert float(likelihood(rows.mean, rows.variance) - rows.kl) <= best + 1e-6


def test_sites_near_a_guess_lead_back_to_it() -> None:
    guess = torch.tensor([[0.4, -0.3]]).double()

    def likelihood(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return -0.5 * 50 * ((mean - guess).square() + variance).sum()

    sites = Sites.near(likelihood, guess)
    torch.testing.assert_close(sites.b, torch.full((1, 2), 50.0).double())
    torch.testing.assert_close(sites.a / sites.b, guess)
