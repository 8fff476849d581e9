"""The classifiers of the MNIST experiment, on made-up images: no data set is needed."""

import warnings

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # gpytorch is built on what torch will drop
    import gpytorch

from experiments._side_by_side import Planned, side_by_side
from experiments._svgp import EVERY, Images, negative_elbo, parts, training
from paceline import Schedule

STEPS = 2 * EVERY
SCHEDULE = Schedule([1e-2, 1e-3], [0, EVERY, STEPS])


@pytest.fixture(scope="module")
def data() -> Images:
    """Two kinds of blurred strokes, 5 x 5 pixels."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.uniform(size=300) < 0.5, -1.0, 1.0)
    strokes = np.where(labels[:, None] > 0, np.eye(5).ravel(), np.eye(5)[::-1].ravel())
    return Images.of(np.clip(strokes + 0.3 * rng.standard_normal((300, 25)), 0, 1), labels, observed=100)


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


def test_runs_side_by_side_are_those_of_single_trainings(data: Images) -> None:
    other = Schedule.constant(1e-3, STEPS)
    steps, values = side_by_side([Planned(data, SCHEDULE, 5), Planned(data, other, 6)], steps=STEPS)
    for row, (schedule, seed) in zip(values, ((SCHEDULE, 5), (other, 6)), strict=True):
        alone = dict(training(data, seed).advance(schedule, STEPS))
        assert list(alone) == steps.tolist()
        np.testing.assert_allclose(row, [value["raw"] for value in alone.values()], rtol=1e-4)
    assert values[0, -1] < values[0, 0]


def test_a_run_continues_from_its_state(data: Images) -> None:
    whole, begun, resumed = (training(data, seed, average=True) for seed in (7, 7, 8))
    expected = list(whole.advance(SCHEDULE, STEPS))
    seen = list(begun.advance(SCHEDULE, EVERY))
    resumed.load_state_dict(begun.state_dict())
    assert [*seen, *resumed.advance(SCHEDULE, STEPS)] == expected


def test_a_run_that_fails_does_not_stop_those_beside_it(data: Images) -> None:
    wild = Schedule.constant(1e20, STEPS)
    _, values = side_by_side([Planned(data, wild, 5), Planned(data, SCHEDULE, 5)], steps=STEPS)
    assert np.isnan(values[0, -1])
    assert np.isfinite(values[1]).all()
