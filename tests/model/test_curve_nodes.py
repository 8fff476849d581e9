"""Quadrature over the latent values of a curve and over time, against sums over all observations."""

import numpy as np
import pytest
import torch

from paceline.model import LINKS, link_of
from paceline.model.curve_nodes import TIMES, CurveNodes, few_times
from paceline.model.likelihood import TraceLikelihood
from tests import reference
from tests.model.example_intervals import UNIT, interval

MANY = [name for name in LINKS if LINKS[name].latents > 2]


@pytest.mark.parametrize("name", MANY)
def test_many_observations_and_finer_nodes_agree_with_brute_force(name: str, rng: np.random.Generator) -> None:
    """100 observations, which are many more than the times that stand for them."""
    link, elapsed = link_of(name), np.linspace(0.01, 1, 100)
    mean, variance = rng.normal(0.5, 0.7, (link.latents, 1)), rng.uniform(0.02, 0.15, (link.latents, 1))
    residuals = link(torch.from_numpy(mean), torch.from_numpy(elapsed)).numpy() + rng.normal(0, 0.1, 100)
    fast = TraceLikelihood.of([interval(elapsed, residuals)], link, UNIT)
    m, v = torch.from_numpy(mean), torch.from_numpy(variance)
    slow = reference.expected_log_likelihood(
        *(link, elapsed, residuals, mean[:, 0], variance[:, 0], float(fast.noise(m, v))),
        anchor_noise=True,
        nodes=(12, *(9 if link.latents == 3 else 7 for _ in range(link.latents - 1))),
    )
    assert float(fast(m, v)) == pytest.approx(slow, abs=0.01)


@pytest.mark.parametrize("name", MANY)
def test_the_gradient_is_that_of_the_value_and_the_hessian_is_close(name: str, rng: np.random.Generator) -> None:
    link, elapsed = link_of(name), np.linspace(0.1, 1, 30)
    segments = [interval(elapsed, 0.4 * elapsed + rng.normal(0, 0.05, 30)) for _ in range(2)]
    sums, shape = CurveNodes.of(segments, link, UNIT, torch.full((2,), 1 / 31).double()), (link.latents - 1, 2)
    mean = torch.from_numpy(rng.normal(0.5, 0.5, shape)).requires_grad_()
    variance = torch.from_numpy(rng.uniform(0.05, 0.2, shape)).requires_grad_()

    def total(m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        cross, gram = sums.expected(m, v)
        return (3 * cross - 2 * gram).sum()

    slope, bend = torch.autograd.grad(total(mean, variance), (mean, variance), create_graph=True)
    (second,) = torch.autograd.grad(slope[0, 0], mean)
    step = torch.zeros(shape).double()
    step[0, 0] = 1e-5
    with torch.no_grad():
        in_mean = (total(mean + step, variance) - total(mean - step, variance)) / 2e-5
        in_variance = (total(mean, variance + step) - total(mean, variance - step)) / 2e-5
    slope, bend, second = slope.detach(), bend.detach(), second.detach()
    assert float(slope[0, 0]) == pytest.approx(float(in_mean), rel=1e-5, abs=1e-7)
    assert float(bend[0, 0]) == pytest.approx(float(in_variance), rel=1e-5, abs=1e-7)
    above, below = (torch.autograd.grad(total(mean + s, variance), mean)[0][:, 0] for s in (step, -step))
    np.testing.assert_allclose(second[:, 0], (above - below) / 2e-5, atol=2e-3 * float(second.abs().max()))


def test_few_times_integrate_polynomials_of_the_square_root_of_time_exactly(rng: np.random.Generator) -> None:
    elapsed, residuals = np.sort(rng.uniform(0.001, 2, 80)), rng.normal(size=80)
    times, weights, data = few_times(elapsed, residuals)
    assert (weights > 0).all()
    for degree in range(2 * TIMES):
        power = degree / 2
        assert weights @ times**power == pytest.approx((elapsed**power).sum(), rel=1e-9)
        if degree < TIMES:
            assert data @ times**power == pytest.approx((residuals * elapsed**power).sum(), abs=1e-8 * 2**power)


def test_few_observations_are_kept_as_they_are(rng: np.random.Generator) -> None:
    elapsed, residuals = np.array([0.2, 0.5]), np.array([0.1, -0.3])
    times, weights, data = few_times(elapsed, residuals)
    np.testing.assert_array_equal(times[:2], elapsed)
    np.testing.assert_array_equal(weights, [1, 1] + [0] * (TIMES - 2))
    np.testing.assert_array_equal(data, [*residuals] + [0] * (TIMES - 2))


def test_many_intervals_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    link = link_of("pow4")
    segments = [interval(np.linspace(0.1, 1, 5), rng.normal(0.3, 0.1, 5)) for _ in range(7)]
    sums = CurveNodes.of(segments, link, UNIT, torch.zeros(7).double())
    mean, variance = torch.from_numpy(rng.normal(size=(2, 7))).requires_grad_(), torch.full((2, 7), 0.1).double()
    whole = [*sums.expected(mean, variance), *sums.candidates()]
    monkeypatch.setattr("paceline.model.curve_nodes.CHUNK", 2000)
    for one, other in zip([*sums.expected(mean, variance), *sums.candidates()], whole, strict=True):
        torch.testing.assert_close(one, other)
