"""Draws along a trace against dense joint Gaussians and Monte Carlo."""

import numpy as np
import pytest
import torch

from paceline import Schedule, TraceModel
from paceline.model.links import LINKS, link_of
from paceline.model.paths import ConditionedProcess, Normals, RunState, draw_path
from paceline.model.posterior import Posterior
from paceline.model.quantiles import increment_quantile
from paceline.problems import SyntheticFamily
from tests import reference


def fitted(link: str = "linear", **settings) -> TraceModel:
    rng = np.random.default_rng(3)
    family = SyntheticFamily.of(link, rng)
    runs = [family.run(rng.uniform(size=5), rng, name=str(i)) for i in range(4)]
    return TraceModel.fit(runs, link=link, **settings)


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return fitted()


def dense(posterior: Posterior, z: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of f at points, first latent, written out."""
    hyper, lengthscales = posterior.hyper, posterior.hyper.log_lengthscales[0].exp().numpy()
    variance, inducing, points = float(hyper.variance[0]), posterior.inducing.numpy(), z.numpy()
    kzz = reference.matern52(inducing, inducing, variance, lengthscales) + 1e-6 * variance * np.eye(len(inducing))
    w = np.linalg.solve(np.linalg.cholesky(kzz), reference.matern52(inducing, points, variance, lengthscales))
    cov = reference.matern52(points, points, variance, lengthscales) - w.T @ posterior.shrinkage[0].numpy() @ w
    return float(hyper.mean[0]) + w.T @ posterior.whitened_mean[0].numpy(), cov


def test_conditioning_agrees_with_the_dense_joint_gaussian(model: TraceModel, rng: np.random.Generator) -> None:
    z = torch.from_numpy(rng.uniform(size=(6, 2)))
    mean, cov = dense(model.posterior, z)
    values, noise = rng.normal(size=4), 0.05
    process = ConditionedProcess(model.posterior)
    for i in range(4):
        look = process.marginal(z[i])
        seen = np.arange(i)
        expected_mean, expected_cov = reference.condition(mean, cov, seen, values[:i], noise) if i else (mean, cov)
        assert float(look.mean[0]) == pytest.approx(expected_mean[i], rel=1e-6, abs=1e-8)
        assert float(look.variance[0]) == pytest.approx(expected_cov[i, i], rel=1e-5, abs=1e-8)
        process = look.condition_on(torch.tensor([values[i]]), torch.tensor([noise]).double())
    expected_mean, expected_cov = reference.condition(mean, cov, np.arange(4), values, noise)
    for i in (4, 5):
        look = process.marginal(z[i])
        assert float(look.mean[0]) == pytest.approx(expected_mean[i], rel=1e-6, abs=1e-8)
        assert float(look.variance[0]) == pytest.approx(expected_cov[i, i], rel=1e-5, abs=1e-8)


def test_draws_at_given_points_have_the_dense_covariance(model: TraceModel, rng: np.random.Generator) -> None:
    """With a link of almost no amplitude the inputs do not depend on the draws, so the joint law is Gaussian."""
    count, draws = 4, 40_000
    normals = Normals.of(1, draws, count, torch.Generator().manual_seed(1))
    unit_lr = torch.from_numpy(rng.uniform(size=count))
    drawn = draw_path(
        RunState(model.process.repeat(draws), (torch.full((draws,), 0.4).double(),)),
        link_of("signed"),
        unit_lr=unit_lr,
        lengths=torch.zeros(count).double(),
        order=1,
        task=None,
        normals=normals,
    )
    z = torch.stack([torch.full((count,), 0.4).double(), unit_lr], -1)
    mean, cov = dense(model.posterior, z)
    cov = cov + float(model.posterior.hyper.nugget[0]) * np.eye(count)
    got = drawn.latents[0].numpy()
    error = np.sqrt(np.diag(cov) / draws)
    np.testing.assert_allclose(got.mean(0), mean, atol=float(5 * error.max()))
    np.testing.assert_allclose(np.cov(got.T), cov, atol=float(0.03 * np.diag(cov).max()))


@pytest.mark.parametrize("link", ["linear", "exponential"])
@pytest.mark.parametrize("order", [1, 2])
def test_draws_are_differentiable_in_the_schedule(link: str, order: int) -> None:
    model = fitted(link, order=order)
    schedule = Schedule([1e-2] * 5, np.arange(6) * 40)

    def final(x: torch.Tensor) -> torch.Tensor:
        drawn = model.draw(schedule, draws=30, unit_lr=x)
        return drawn.values[:, -1].mean()

    x = torch.tensor([0.2, 0.5, 0.4, 0.7, 0.6]).double().requires_grad_()
    (gradient,) = torch.autograd.grad(final(x), x)
    assert bool((gradient != 0).all())
    for i in range(5):
        step = torch.zeros(5).double()
        step[i] = 1e-5
        slope = float(final(x.detach() + step) - final(x.detach() - step)) / 2e-5
        assert float(gradient[i]) == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_the_same_seed_gives_the_same_draws_and_the_global_state_is_left_alone(model: TraceModel) -> None:
    schedule = Schedule([1e-2] * 5, np.arange(6) * 40)
    before = torch.get_rng_state()
    first, second = model.forecast(schedule), model.forecast(schedule)
    np.testing.assert_array_equal(first.draws, second.draws)
    assert bool((torch.get_rng_state() == before).all())
    other = model.forecast(schedule, generator=torch.Generator().manual_seed(5))
    assert np.any(other.draws != first.draws)


def test_conditioning_on_a_draw_gives_a_model_that_expects_it(model: TraceModel) -> None:
    schedule = Schedule([2e-2] * 5, np.arange(6) * 40)
    drawn = model.draw(schedule, draws=3)
    known = model.condition_on(drawn[0])
    before, after = model.draw(schedule, draws=500).values, known.draw(schedule, draws=500).values
    assert float(after[:, 1].std()) < float(before[:, 1].std())
    batch = model.condition_on(drawn)
    assert batch.draw(schedule, draws=7).values.shape == (3, 7, 6)
    torch.testing.assert_close(
        batch.draw(schedule, draws=4).values[0], known.draw(schedule, draws=4).values, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", list(LINKS))
def test_one_step_quantiles_agree_with_monte_carlo(name: str, alpha: float, rng: np.random.Generator) -> None:
    link, draws = link_of(name), 200_000
    mean, variance = (
        torch.from_numpy(rng.normal(0, 1, (link.latents, 3))),
        torch.from_numpy(rng.uniform(0.05, 1, (link.latents, 3))),
    )
    elapsed = torch.tensor(0.8).double()
    exact = increment_quantile(link, alpha, mean, variance, elapsed)
    f = mean[..., None] + variance[..., None].sqrt() * torch.from_numpy(rng.standard_normal((link.latents, 3, draws)))
    samples = link(f, elapsed)
    below = (samples <= exact[:, None]).double().mean(1)
    error = 4 * np.sqrt(alpha * (1 - alpha) / draws)
    np.testing.assert_allclose(below.numpy(), alpha, atol=error)


def test_points_that_all_but_coincide_do_not_blow_up(model: TraceModel) -> None:
    count, draws = 60, 50
    drawn = draw_path(
        RunState(model.process.repeat(draws), (torch.full((draws,), 3.0).double(),)),
        link_of("linear"),
        unit_lr=torch.full((count,), 0.5).double(),
        lengths=torch.full((count,), 1e-9).double(),
        order=1,
        task=None,
        normals=Normals.of(1, draws, count, torch.Generator().manual_seed(1)),
    )
    spread = float((model.posterior.hyper.variance + model.posterior.hyper.nugget).sqrt())
    assert float((drawn.latents - model.posterior.hyper.mean).abs().max()) < 8 * spread
