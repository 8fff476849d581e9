"""The failure model: its likelihood, what it learns, and which intervals failed."""

import numpy as np
import pytest
import torch

from paceline import InputError
from paceline.model import FailureModel
from paceline.model.failure import ProbitLikelihood, failed_intervals
from tests import reference
from tests.model.example_intervals import interval


def grid(n: int) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    return np.stack([x.ravel(), y.ravel()], -1)


def test_learns_a_border_and_is_uncertain_on_it() -> None:
    inputs = grid(7)
    model = FailureModel.fit(inputs, inputs[:, 1] > 0.6)
    p = model.probability(np.array([[0.5, 0.05], [0.5, 0.6], [0.5, 0.95]]))
    assert p[0] < 0.1 < p[1] < 0.9 < p[2]


def test_without_failures_none_is_likely_and_with_failures_only_most_are() -> None:
    inputs = grid(4)
    assert FailureModel.fit(inputs, np.zeros(16, bool)).probability(inputs).max() < 0.2
    assert FailureModel.fit(inputs, np.ones(16, bool)).probability(inputs).min() > 0.5


def test_a_fit_that_starts_from_fewer_labels_ends_like_a_new_one() -> None:
    inputs = grid(5)
    failed = inputs[:, 1] > 0.5
    early = FailureModel.fit(inputs[:15], failed[:15])
    late = FailureModel.fit(inputs, failed, start=early)
    cold = FailureModel.fit(inputs, failed)
    np.testing.assert_allclose(late.probability(inputs), cold.probability(inputs), atol=0.05)


def test_intervals_fail_if_they_end_three_deviations_worse() -> None:
    t = np.array([0.5, 1.0])
    fine, worse = interval(t, np.array([0.1, 0.2])), interval(t, np.array([0.1, -0.4]))
    assert failed_intervals([fine, worse], 0.1).tolist() == [False, True]
    assert failed_intervals([fine, worse], 0.2).tolist() == [False, False]


@pytest.mark.parametrize(
    ("inputs", "failed", "message"),
    [
        (np.zeros((0, 2)), np.zeros(0, bool), "at least one row, got 0 rows"),
        (np.zeros((3, 2)), np.zeros(2, bool), "3 rows and 2 labels"),
        (np.full((2, 2), np.nan), np.zeros(2, bool), "inputs must be finite"),
    ],
)
def test_wrong_labels_say_what_to_do(inputs: np.ndarray, failed: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FailureModel.fit(inputs, failed)


def test_the_likelihood_agrees_with_quadrature(rng: np.random.Generator) -> None:
    signs = torch.from_numpy(np.where(rng.uniform(size=30) > 0.5, 1.0, -1.0))
    mean, variance = torch.from_numpy(rng.normal(size=(1, 30))), torch.from_numpy(rng.uniform(0.1, 1, (1, 30)))
    nodes, weights = reference.gauss_hermite(60)
    f = mean[0, :, None] + variance[0, :, None].sqrt() * torch.from_numpy(nodes)
    slow = (torch.special.log_ndtr(signs[:, None] * f) * torch.from_numpy(weights)).sum()
    assert float(ProbitLikelihood(signs)(mean, variance)) == pytest.approx(float(slow), rel=1e-6)


def test_the_latent_function_is_positive_at_failures_and_negative_elsewhere(rng: np.random.Generator) -> None:
    inputs = rng.uniform(size=(30, 2))
    model = FailureModel.fit(inputs, inputs[:, 1] > 0.5)
    mean, _ = model.posterior.marginal(torch.tensor([[0.5, 0.9], [0.5, 0.1]]).double())
    assert float(mean[0, 0]) > 0.5 > -0.5 > float(mean[0, 1])
