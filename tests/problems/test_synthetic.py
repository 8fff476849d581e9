import numpy as np
import pytest
import torch

from paceline.model import LINKS
from paceline.problems import SyntheticFamily
from tests import reference


def test_latent_functions_have_the_covariance_of_the_model() -> None:
    points = np.array([[0.2, 0.3], [0.4, 0.3], [0.9, 0.1]])
    draws = []
    for seed in range(1500):
        family = SyntheticFamily.of("linear", np.random.default_rng(seed), features=60)
        draws.append([family.latent(*p)[0] for p in points])
    expected = reference.matern52(points, points, 1.0, np.array([0.6, 0.6]))
    np.testing.assert_allclose(np.cov(np.array(draws).T), expected, atol=0.15)


@pytest.mark.parametrize("link", list(LINKS))
def test_runs_follow_the_link(link: str) -> None:
    rng = np.random.default_rng(0)
    family = SyntheticFamily.of(link, rng, noise=0.0, effect=0.0)
    run = family.run(np.array([0.2, 0.7]), rng, length=10, every=5)
    assert run.steps.tolist() == [0, 5, 10, 15, 20]
    f = torch.tensor(family.latent(float(run.values[2]), 0.7))
    increment = float(family.link(f[:, None], torch.tensor([1.0]).double())[0])
    assert run.values[4] - run.values[2] == pytest.approx(increment)
