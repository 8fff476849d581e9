"""The classifiers of the MNIST experiment, on made-up images: no data set is needed."""

import warnings

import gpytorch
import pytest
import torch

from experiments._svgp import EVERY, Images, negative_elbo, parts, training
from paceline import Schedule
from tests.experiments.blurred_strokes import blurred_strokes

STEPS = 2 * EVERY
SCHEDULE = Schedule([1e-2, 1e-3], [0, EVERY, STEPS])


@pytest.fixture(scope="module")
def data() -> Images:
    return blurred_strokes()


def test_the_bound_is_that_of_gpytorch(data: Images) -> None:
    model = training(data, 3).model
    torch.nn.init.normal_(model.variational_strategy._variational_distribution.variational_mean)
    x, y = data.x[:50], data.y[:50]
    theirs = gpytorch.mlls.VariationalELBO(gpytorch.likelihoods.BernoulliLikelihood(), model, len(data.x))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of gpytorch's own numerics
        expected = -float(theirs(model(x), (y + 1) / 2))
    ours = negative_elbo(parts(model), x[None], y[None], data.count)
    assert float(ours.detach()) == pytest.approx(expected, rel=1e-3)


def test_a_run_continues_from_its_state(data: Images) -> None:
    whole, begun, resumed = (training(data, seed, average=True) for seed in (7, 7, 8))
    expected = list(whole.advance(SCHEDULE, STEPS))
    seen = list(begun.advance(SCHEDULE, EVERY))
    resumed.load_state_dict(begun.state_dict())
    assert [*seen, *resumed.advance(SCHEDULE, STEPS)] == expected
