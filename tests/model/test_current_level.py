"""The level behind a run's last observation."""

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.model.current_level import current_level
from tests.model.example_runs import decay, drawn_runs


def test_the_first_interval_from_a_start_continues_the_run() -> None:
    model = TraceModel.fit([decay(r, noise=0.02, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2, 3e-2))], intervals=10)
    run = decay(5e-3, noise=0.02, seed=9).head(8)
    soon = model.forecast(run.schedule, [run.last_step], start=run, noise=False)
    truth = 3 * np.exp(-5e-3 * run.last_step) + 0.5
    assert abs(soon.mean[0] - truth) < 0.02
    assert soon.draws.std() < 0.02  # the level is less uncertain than one observation


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_the_expected_level_uses_the_whole_interval_and_its_spread_is_below_the_noise(link: str) -> None:
    runs = drawn_runs(link, 5)
    model, run = TraceModel.fit(runs[:4], link=link), runs[4].head(15)
    noise, past = torch.tensor(0.01).double(), model.encoder.past(run)

    def level(normals: torch.Tensor) -> torch.Tensor:
        return current_level(model.encoder, model.link, model.posterior, past, noise, normals)

    centre = level(torch.zeros(1).double())
    spread = level(torch.ones(1).double()) - centre
    assert float(abs(centre - past.values[0])) < 4 * 0.1
    assert 0 < float(spread) < 0.1  # the standard deviation of one observation


def test_a_single_observation_is_the_level_with_its_noise() -> None:
    model, run = TraceModel.fit(drawn_runs("linear", 4)), decay(1e-2).head(1)
    past, noise = model.encoder.past(run), torch.tensor(0.04).double()
    level = current_level(model.encoder, model.link, model.posterior, past, noise, torch.tensor([0.0, 1.0]).double())
    np.testing.assert_allclose(level.numpy(), past.values[0] + np.array([0.0, 0.2]))
