"""The collapsed likelihood against the same expectation on all observations, by brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline import LearningRateRange
from paceline.model.likelihood import TraceLikelihood
from paceline.model.links import LINKS, Link, inverse_softplus, link_of
from paceline.traces import Moments, Scaling, Segment
from tests import reference

ONE = Scaling(0.0, 1.0, 1.0, LearningRateRange(0.1, 1.0))


def segment(elapsed: np.ndarray, residuals: np.ndarray) -> Segment:
    moments = Moments().append(elapsed, residuals)
    return Segment("", "", 0, 1, (0.0,), (0.0,), elapsed, residuals, moments, failed=False, first=True)


def intervals(link: Link, rows: int, seed: int) -> tuple[list[Segment], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    segments = []
    for _ in range(rows):
        n = int(rng.integers(1, 12))
        segments.append(segment(np.sort(rng.uniform(0.01, 2.0, n)), rng.normal(0.2, 0.5, n)))
    return segments, rng.normal(-1, 2, (link.latents, rows)), rng.uniform(0.01, 1.0, (link.latents, rows))


@pytest.mark.parametrize("anchor_noise", [True, False])
@pytest.mark.parametrize("name", list(LINKS))
@given(rows=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_agrees_with_brute_force_on_all_observations(name: str, anchor_noise: bool, rows: int, seed: int) -> None:
    link = link_of(name)
    segments, mean, variance = intervals(link, rows, seed)
    fast = TraceLikelihood.of(segments, link, ONE, anchor_noise=anchor_noise)
    m, v = torch.from_numpy(mean), torch.from_numpy(variance)
    noise = float(fast.noise(m, v))
    slow = sum(
        reference.expected_log_likelihood(
            link, s.elapsed, s.residuals, mean[:, i], variance[:, i], noise, anchor_noise=anchor_noise
        )
        for i, s in enumerate(segments)
    )
    assert float(fast(m, v)) == pytest.approx(slow, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", list(LINKS))
def test_profiled_noise_is_the_best(name: str, rng: np.random.Generator) -> None:
    link = link_of(name)
    segments = [segment(np.linspace(0.1, 1, 9), rng.normal(0.2, 0.5, 9)) for _ in range(3)]
    likelihood = TraceLikelihood.of(segments, link, ONE)
    m, v = torch.full((link.latents, 3), -0.5).double(), torch.full((link.latents, 3), 0.1).double()
    noise = float(likelihood.noise(m, v))

    def at(value: float) -> float:
        return sum(
            reference.expected_log_likelihood(
                link, s.elapsed, s.residuals, m[:, i].numpy(), v[:, i].numpy(), value, anchor_noise=True
            )
            for i, s in enumerate(segments)
        )

    assert at(noise) > max(at(0.97 * noise), at(1.03 * noise))


@pytest.mark.parametrize("name", list(LINKS))
def test_units_do_not_matter(name: str, rng: np.random.Generator) -> None:
    link = link_of(name)
    elapsed, residuals = np.linspace(0.1, 1, 9), rng.normal(0.2, 0.5, 9)
    one = TraceLikelihood.of([segment(elapsed, residuals)], link, ONE)
    scaled = TraceLikelihood.of([segment(40 * elapsed, 1e-6 * residuals)], link, Scaling(3.0, 1e-6, 40.0, ONE.lr_range))
    m, v = torch.full((link.latents, 1), 0.3).double(), torch.full((link.latents, 1), 0.2).double()
    assert float(one(m, v)) == pytest.approx(float(scaled(m, v)), rel=1e-9)


@pytest.mark.parametrize("name", list(LINKS))
def test_links_start_at_zero_grow_and_invert(name: str) -> None:
    link = link_of(name)
    f = torch.tensor([0.4, 0.7])[: link.latents].double()
    t = torch.linspace(0, 5, 50).double()
    eta = link(f[:, None], t)
    assert float(eta[0]) == 0.0
    assert bool((eta.diff() > 0).all())
    assert float(link.inverse_amplitude(link.amplitude(f[:1]))) == pytest.approx(float(f[0]))


def test_formulas_of_the_links() -> None:
    f, t = torch.tensor([0.3, -0.2]).double(), torch.tensor(1.7).double()
    phi = torch.log1p(torch.exp(f))
    assert float(link_of("linear")(f[:1], t)) == pytest.approx(float(phi[0] * t))
    assert float(link_of("signed")(-f[:1], t)) == pytest.approx(float(-f[0] * t))
    assert float(link_of("exponential")(f, t)) == pytest.approx(float(phi[0] * (1 - torch.exp(-phi[1] * t))))
    assert float(link_of("power")(f, t)) == pytest.approx(float(phi[0] * (1 - (1 + t) ** -phi[1])))
    assert float(link_of("hyperbolic")(f, t)) == pytest.approx(float(phi[0] * phi[1] * t / (1 + phi[1] * t)))
    y = torch.tensor([1e-8, 0.5, 30.0]).double()
    torch.testing.assert_close(torch.nn.functional.softplus(inverse_softplus(y)), y)
