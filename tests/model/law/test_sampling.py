"""Draws of the law's parameters around their mode."""

import numpy as np
import pytest

from paceline.model.law.coefficients import Solution
from paceline.model.law.sampling import draw_parameters, exponent_covariance
from paceline.model.law.search import LawSearch
from paceline.model.law.settings import SEARCH
from paceline.model.law.terms import CENTRE, SPREAD


class GaussianSearch(LawSearch):
    """A search whose log posterior is Gaussian with these deviations; its coefficients are the exponents."""

    def __init__(self, deviations: np.ndarray) -> None:
        self.deviations = deviations

    def energy(self, exponents: np.ndarray) -> float:
        return float(0.5 * np.sum(((exponents - CENTRE) / self.deviations) ** 2))

    def solve(self, exponents: np.ndarray, random: np.random.Generator | None = None) -> Solution:
        return Solution(exponents[None], self.energy(exponents), np.zeros((1, 4)), np.zeros((1, 4)))


def test_second_differences_give_the_covariance() -> None:
    covariance = exponent_covariance(GaussianSearch(0.5 * SPREAD), CENTRE)
    np.testing.assert_allclose(covariance, np.diag((0.5 * SPREAD) ** 2), atol=1e-6)


def test_the_covariance_is_at_most_twice_that_of_the_prior() -> None:
    covariance = exponent_covariance(GaussianSearch(100 * SPREAD), CENTRE)
    np.testing.assert_allclose(np.diag(covariance), 2 * SPREAD**2)


def test_draws_have_the_moments_of_the_posterior_and_belong_together() -> None:
    deviations = 0.3 * SPREAD
    exponents, coefficients = draw_parameters(GaussianSearch(deviations), CENTRE, seed=0)
    assert exponents.shape == (SEARCH.draws, 4)
    np.testing.assert_array_equal(coefficients[:, 0], exponents)
    np.testing.assert_allclose((exponents.mean(0) - CENTRE) / deviations, 0, atol=0.35)
    np.testing.assert_allclose(exponents.std(0) / deviations, 1, atol=0.3)


def test_the_same_seed_gives_the_same_draws() -> None:
    one, other, third = (draw_parameters(GaussianSearch(SPREAD), CENTRE, seed=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, other)
    assert one != pytest.approx(third)
