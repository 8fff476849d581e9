"""Conditioned processes against dense joint Gaussians."""

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.model.process import ConditionedProcess
from tests import reference
from tests.model.dense import posterior_at
from tests.model.example_runs import drawn_runs


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return TraceModel.fit(drawn_runs("linear", 4, seed=3))


def test_conditioning_agrees_with_the_dense_joint_gaussian(model: TraceModel, rng: np.random.Generator) -> None:
    z = torch.from_numpy(rng.uniform(size=(6, 2)))
    mean, cov = posterior_at(model.posterior, z)
    values, noise = rng.normal(size=4), 0.05
    process = ConditionedProcess(model.posterior)
    for i in range(4):
        marginal = process.marginal(z[i])
        before = np.arange(i)
        expected_mean, expected_cov = reference.condition(mean, cov, before, values[:i], noise) if i else (mean, cov)
        assert float(marginal.mean[0]) == pytest.approx(expected_mean[i], rel=1e-6, abs=1e-8)
        assert float(marginal.variance[0]) == pytest.approx(expected_cov[i, i], rel=1e-5, abs=1e-8)
        process = marginal.condition_on(torch.tensor([values[i]]), torch.tensor([noise]).double())
    expected_mean, expected_cov = reference.condition(mean, cov, np.arange(4), values, noise)
    for i in (4, 5):
        marginal = process.marginal(z[i])
        assert float(marginal.mean[0]) == pytest.approx(expected_mean[i], rel=1e-6, abs=1e-8)
        assert float(marginal.variance[0]) == pytest.approx(expected_cov[i, i], rel=1e-5, abs=1e-8)


def test_points_from_before_a_split_count_for_each_part(model: TraceModel, rng: np.random.Generator) -> None:
    """Conditioning before and after `repeat` is conditioning on all points, in this order, part by part."""
    z, values = torch.from_numpy(rng.uniform(size=(6, 2))), torch.from_numpy(rng.normal(size=6))
    plain = ConditionedProcess(model.posterior)
    split = plain
    for i in range(5):
        plain = plain.marginal(z[i]).condition_on(values[i].reshape(1))
        split = split.repeat(2) if i in (2, 3) else split
        point = z[i].expand(*split.batch, 2)
        split = split.marginal(point).condition_on(values[i].expand(1, *split.batch))
    one, many = plain.marginal(z[5]), split.marginal(z[5])
    assert many.mean.shape == (1, 2, 2)
    torch.testing.assert_close(many.mean, one.mean.reshape(1, 1, 1).expand(1, 2, 2))
    torch.testing.assert_close(many.variance, one.variance.reshape(1, 1, 1).expand(1, 2, 2))
    assert [len(block.features) for block in split.blocks] == [2, 1, 2]
