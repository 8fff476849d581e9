"""Draws along a trace against dense joint Gaussians."""

import numpy as np
import pytest
import torch

from paceline import Schedule, TraceModel
from paceline.model import link_of
from paceline.model.normals import Normals
from paceline.model.paths import RunState, draw_path, latent_input
from tests.model.dense import posterior_at
from tests.model.example_runs import drawn_runs


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return TraceModel.fit(drawn_runs("linear", 4, seed=3))


def test_draws_at_given_points_have_the_dense_covariance(model: TraceModel, rng: np.random.Generator) -> None:
    """With a link of almost no amplitude the inputs do not depend on the draws, so these are Gaussian."""
    count, draws = 4, 40_000
    normals = Normals.draw(1, draws, count, torch.Generator().manual_seed(1))
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
    mean, cov = posterior_at(model.posterior, z)
    cov = cov + float(model.posterior.hyper.nugget[0]) * np.eye(count)
    actual = drawn.latents[0].numpy()
    error = np.sqrt(np.diag(cov) / draws)
    np.testing.assert_allclose(actual.mean(0), mean, atol=float(5 * error.max()))
    np.testing.assert_allclose(np.cov(actual.T), cov, atol=float(0.03 * np.diag(cov).max()))


@pytest.mark.parametrize("link", ["linear", "exponential"])
@pytest.mark.parametrize("order", [1, 2])
def test_draws_are_differentiable_in_the_schedule(link: str, order: int) -> None:
    model = TraceModel.fit(drawn_runs(link, 4, seed=3), link=link, order=order)
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


def test_draws_stay_finite_if_points_almost_coincide(model: TraceModel) -> None:
    count, draws = 60, 50
    drawn = draw_path(
        RunState(model.process.repeat(draws), (torch.full((draws,), 3.0).double(),)),
        link_of("linear"),
        unit_lr=torch.full((count,), 0.5).double(),
        lengths=torch.full((count,), 1e-9).double(),
        order=1,
        task=None,
        normals=Normals.draw(1, draws, count, torch.Generator().manual_seed(1)),
    )
    spread = float((model.posterior.hyper.variance + model.posterior.hyper.nugget).sqrt())
    assert float((drawn.latents - model.posterior.hyper.mean).abs().max()) < 8 * spread


def test_missing_history_repeats_the_oldest() -> None:
    value, rate = (torch.tensor([x]).double() for x in (0.3, 0.7))
    z = latent_input([value], [rate, rate + 1], 3, task=2, rate_sum=torch.tensor(0.5).double())
    assert z.tolist() == [pytest.approx([0.3, 0.3, 0.3, 0.7, 1.7, 1.7, 0.5, 2.0])]
