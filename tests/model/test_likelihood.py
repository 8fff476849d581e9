"""The likelihood per interval against the same expectation on all observations, by brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.model import LINKS, Link, link_of
from paceline.model.likelihood import TraceLikelihood
from paceline.traces import Scaling, Segment
from tests import reference
from tests.model.example_intervals import UNIT, interval


def intervals(link: Link, rows: int, seed: int) -> tuple[list[Segment], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    segments = []
    for _ in range(rows):
        n = int(rng.integers(1, 12))
        segments.append(interval(np.sort(rng.uniform(0.01, 2.0, n)), rng.normal(0.2, 0.5, n)))
    return segments, rng.normal(-1, 2, (link.latents, rows)), rng.uniform(0.01, 1.0, (link.latents, rows))


@pytest.mark.parametrize("anchor_noise", [True, False])
@pytest.mark.parametrize("name", [name for name in LINKS if LINKS[name].latents <= 2])
@given(rows=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_agrees_with_brute_force_on_all_observations(name: str, anchor_noise: bool, rows: int, seed: int) -> None:
    check_against_brute_force(link_of(name), anchor_noise, rows, seed)


@pytest.mark.parametrize("anchor_noise", [True, False])
@pytest.mark.parametrize("name", [name for name in LINKS if LINKS[name].latents > 2])
def test_links_with_three_and_four_latents_agree_with_brute_force(name: str, anchor_noise: bool) -> None:
    for seed in range(3):
        check_against_brute_force(link_of(name), anchor_noise, 3, seed)


def check_against_brute_force(link: Link, anchor_noise: bool, rows: int, seed: int) -> None:
    segments, mean, variance = intervals(link, rows, seed)
    fast = TraceLikelihood.of(segments, link, UNIT, anchor_noise=anchor_noise)
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
    segments = [interval(np.linspace(0.1, 1, 9), rng.normal(0.2, 0.5, 9)) for _ in range(3)]
    likelihood = TraceLikelihood.of(segments, link, UNIT)
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
    one = TraceLikelihood.of([interval(elapsed, residuals)], link, UNIT)
    scaled = TraceLikelihood.of(
        [interval(40 * elapsed, 1e-6 * residuals)], link, Scaling(3.0, 1e-6, 40.0, UNIT.lr_range)
    )
    m, v = torch.full((link.latents, 1), 0.3).double(), torch.full((link.latents, 1), 0.2).double()
    assert float(one(m, v)) == pytest.approx(float(scaled(m, v)), rel=1e-9)


def test_noises_of_groups_are_those_of_their_intervals(rng: np.random.Generator) -> None:
    link = link_of("linear")
    intervals = [interval(np.linspace(0.1, 1, 9), rng.normal(0.2, scale, 9)) for scale in (0.1, 0.5, 0.1)]
    m, v = torch.full((1, 3), -0.5).double(), torch.full((1, 3), 0.1).double()
    both = TraceLikelihood.of(intervals, link, UNIT, group=[0, 1, 0], groups=3)
    quiet, loud, empty = both.noises(m, v).tolist()
    assert quiet == pytest.approx(float(both.rows(torch.tensor([0, 2])).noise(m[:, :2], v[:, :2])))
    assert loud == pytest.approx(float(both.rows(torch.tensor([1])).noise(m[:, :1], v[:, :1])))
    assert empty == pytest.approx(float(both.noise(m, v)))


def test_joined_intervals_have_the_sum_of_their_expectations(rng: np.random.Generator) -> None:
    link = link_of("exponential")
    one, other = (TraceLikelihood.of([interval(np.ones(1), rng.normal(size=1))], link, UNIT) for _ in range(2))
    m, v = torch.from_numpy(rng.normal(size=(2, 2))), torch.full((2, 2), 0.3).double()
    sse = one.concat(other).expected_sse(m, v)
    torch.testing.assert_close(sse[:1], one.expected_sse(m[:, :1], v[:, :1]))
    torch.testing.assert_close(sse[1:], other.expected_sse(m[:, 1:], v[:, 1:]))
