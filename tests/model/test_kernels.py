"""The kernel against gpytorch's, the task kernel, and derivatives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline.model.kernels import Hyperparameters, covariance, fast_covariance, log_prior
from paceline.model.settings import PRIORS
from tests.model.example_intervals import hyperparameters


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # gpytorch's own, on import
def test_kernel_equals_gpytorchs(rng: np.random.Generator) -> None:
    import gpytorch

    hyper = hyperparameters(1, 2, rng)
    a, b = torch.from_numpy(rng.uniform(size=(5, 2))), torch.from_numpy(rng.uniform(size=(7, 2)))
    parts = [gpytorch.kernels.MaternKernel(2.5, active_dims=[d]).double() for d in range(2)]
    for d, part in enumerate(parts):
        part.lengthscale = hyper.log_lengthscales[0, d].exp()
    gpytorch_kernel = hyper.variance[0] * (parts[0] * parts[1])(a, b).to_dense()
    torch.testing.assert_close(covariance(hyper, a, b)[0], gpytorch_kernel.detach())


def test_tasks_multiply_the_kernel(rng: np.random.Generator) -> None:
    start = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=3, dims=2)
    z = torch.tensor([[0.1, 0.2, 0.0], [0.1, 0.2, 1.0], [0.1, 0.2, 2.0]]).double()
    k = covariance(start, z, z)[0]
    w = start.embedding
    r = 5**0.5 * torch.cdist(w, w)
    torch.testing.assert_close(k, start.variance[0] * (1 + r + r.square() / 3) * torch.exp(-r), rtol=1e-9, atol=1e-9)
    alone = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=3, dims=0)
    torch.testing.assert_close(covariance(alone, z, z)[0], alone.variance[0] * torch.eye(3).double())


def test_coordinates_multiply_the_kernel_each_with_a_lengthscale_of_its_own() -> None:
    c = torch.tensor([[0.0, -1.0], [0.5, 1.0], [-0.5, 0.0]]).double()
    start = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=3, dims=2, coordinates=c)
    hyper = replace(start, log_coordinate_lengthscales=torch.tensor([0.5, 1.5]).double())
    z = torch.tensor([[0.1, 0.2, 0.0], [0.1, 0.2, 1.0], [0.1, 0.2, 2.0]]).double()
    w = hyper.embedding
    by_hand = float(hyper.variance[0])
    for gap in (
        float((w[0] - w[1]).square().sum().sqrt()),
        0.5 / float(torch.exp(torch.tensor(0.5))),
        2.0 / float(torch.exp(torch.tensor(1.5))),
    ):
        r = 5**0.5 * gap
        by_hand *= (1 + r + r * r / 3) * float(np.exp(-r))
    assert float(covariance(hyper, z, z)[0, 0, 1]) == pytest.approx(by_hand, rel=1e-6)
    assert float(covariance(hyper, z, z)[0, 1, 1]) == pytest.approx(float(hyper.variance[0]))


def test_coordinates_are_not_learnt_but_their_lengthscales_are() -> None:
    c = torch.tensor([[0.0], [1.0]]).double()
    hyper = Hyperparameters.start(torch.zeros(1).double(), 2, nugget=False, tasks=2, dims=1, coordinates=c)
    moved = hyper.with_free(hyper.free() + 1)
    torch.testing.assert_close(moved.coordinates, c)
    torch.testing.assert_close(moved.log_coordinate_lengthscales, hyper.log_coordinate_lengthscales + 1)
    assert float(log_prior(moved, torch.zeros(1))) < float(log_prior(hyper, torch.zeros(1)))


@pytest.mark.parametrize("coordinates", [0, 2])
@pytest.mark.parametrize("tasks", [0, 3])
def test_the_fast_covariance_has_the_same_values_and_derivatives(
    tasks: int, coordinates: int, rng: np.random.Generator
) -> None:
    known = torch.from_numpy(rng.normal(size=(tasks, coordinates)))
    hyper = Hyperparameters.start(
        torch.zeros(2).double(), 3, nugget=True, tasks=tasks, dims=2 if tasks else 0, coordinates=known
    )
    a, b = (torch.from_numpy(rng.uniform(size=(n, 3 + (tasks > 0)))) for n in (7, 5))
    if tasks:
        a[:, 3], b[:, 3] = torch.arange(7) % 3, torch.arange(5) % 3
    torch.testing.assert_close(fast_covariance(hyper, a, b), covariance(hyper, a, b))
    weight = torch.from_numpy(rng.normal(size=(2, 7, 5)))
    slopes = [
        torch.autograd.grad((k(hyper, a.requires_grad_(), b) * weight).sum(), a)[0][:, :3]
        for k in (fast_covariance, covariance)
    ]
    torch.testing.assert_close(*slopes)


def test_free_numbers_go_there_and_back(rng: np.random.Generator) -> None:
    hyper = hyperparameters(2, 3, rng)
    vector = torch.from_numpy(rng.normal(size=len(hyper.free())))
    torch.testing.assert_close(hyper.with_free(vector).free(), vector)
    fixed = hyperparameters(2, 3, rng, nugget=False)
    assert len(fixed.free()) == len(hyper.free()) - 2
    assert fixed.with_free(fixed.free()).nugget.tolist() == [0, 0]


def test_the_prior_is_highest_at_its_centre(rng: np.random.Generator) -> None:
    hyper = hyperparameters(1, 2, rng)
    centre = torch.tensor([0.7]).double()
    best = hyper.with_free(
        torch.tensor([0.7, PRIORS.log_scale[0], PRIORS.log_nugget[0], *[PRIORS.log_lengthscale[0]] * 2]).double()
    )
    assert float(log_prior(best, centre)) == pytest.approx(0.0)
    assert float(log_prior(hyper, centre)) < 0
