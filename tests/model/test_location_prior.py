"""Priors of a new task's location: the convex hull and the Gaussian."""

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.errors import InputError
from paceline.model.location_prior import GaussianPrior, HullPrior, location_prior_of
from paceline.model.settings import LOCATION
from tests.model.example_runs import task_runs


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_draws_from_a_hull_are_uniform() -> None:
    """Moments of a rectangle that is cut into triangles of different size."""
    corners = torch.tensor([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0], [0.3, 0.5]]).double()
    hull = HullPrior(corners)
    w = hull.draw(10_000, generator())
    assert bool(((w >= 0) & (w <= torch.tensor([2.0, 1.0]))).all())
    torch.testing.assert_close(hull.log_density(w), torch.full((10_000,), -np.log(2)).double())
    torch.testing.assert_close(w.mean(0), torch.tensor([1.0, 0.5]).double(), atol=0.02, rtol=0)
    torch.testing.assert_close(torch.cov(w.T), torch.diag(torch.tensor([4 / 12, 1 / 12])).double(), atol=0.01, rtol=0)
    outside = torch.tensor([[2.1, 0.5], [-0.1, 0.0], [1.0, 1.01]]).double()
    assert torch.isneginf(hull.log_density(outside)).all()


def test_a_hull_on_a_line_is_an_interval() -> None:
    corners = torch.tensor([[3.0], [-1.0], [0.0]]).double()
    hull = HullPrior(corners)
    w = hull.draw(4_000, generator())
    assert -1 <= float(w.min()) < -0.9
    assert 2.9 < float(w.max()) <= 3
    assert float(w.mean()) == pytest.approx(1.0, abs=0.06)
    assert float(w.var()) == pytest.approx(16 / 12, rel=0.06)
    assert hull.log_density(torch.tensor([[0.0], [3.5]]).double()).tolist() == [-np.log(4), -np.inf]


@pytest.mark.parametrize(
    "corners",
    [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[1.0, 1.0]] * 4],
)
def test_a_hull_without_volume_is_refused_with_advice(corners: list[list[float]]) -> None:
    with pytest.raises(InputError, match=r'has no volume in 2 dimensions: use prior="gaussian", or a family of more'):
        HullPrior(torch.tensor(corners).double())


def test_a_gaussian_has_the_moments_of_one_more_task() -> None:
    locations = torch.tensor([[0.0, 1.0], [2.0, 1.5], [1.0, -1.0], [3.0, 0.5]]).double()
    prior = GaussianPrior.around(locations)
    covariance = (1 + 1 / 4) * torch.cov(locations.T) + LOCATION.nearest**2 * torch.eye(2).double()
    torch.testing.assert_close(prior.mean, locations.mean(0))
    torch.testing.assert_close(prior.chol @ prior.chol.mT, covariance)
    w = prior.draw(40_000, generator())
    torch.testing.assert_close(w.mean(0), locations.mean(0), atol=0.03, rtol=0)
    torch.testing.assert_close(torch.cov(w.T), covariance, atol=0.06, rtol=0)
    exact = torch.distributions.MultivariateNormal(locations.mean(0), covariance).log_prob(w[:50])
    torch.testing.assert_close(prior.log_density(w[:50]), exact)
    one = GaussianPrior.around(locations[:1])  # a single task does not determine the width
    torch.testing.assert_close(one.chol, LOCATION.nearest * torch.eye(2).double())


def test_priors_go_by_name() -> None:
    model = TraceModel.fit([run for task in "abc" for run in task_runs(task, 2, shift=ord(task) - 97.0)], tasks=2)
    assert isinstance(location_prior_of("gaussian", model), GaussianPrior)
    assert isinstance(location_prior_of("hull", model), HullPrior)
    with pytest.raises(InputError, match=r"prior must be one of \['gaussian', 'hull'\], got 'box'"):
        location_prior_of("box", model)
    apart = TraceModel.fit([*task_runs("a", 2, shift=0.0), *task_runs("c", 2, shift=2.0)], tasks=0)
    with pytest.raises(InputError, match="share something, got 2 tasks in 0 dimensions: make the family with dims"):
        location_prior_of("gaussian", apart)
