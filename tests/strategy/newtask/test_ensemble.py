"""A new task as an ensemble of models: the share due to its location, the best continuation, the best probe."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.model import TaskPosterior, location_prior_of
from paceline.settings import SearchBudget
from paceline.strategy.newtask import TaskEnsemble, location_share
from tests.strategy.newtask.example_family import BEST, SPACE, run

SEARCH = SearchBudget(draws=8, grid=5, sweeps=1, gradient_steps=5)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_share_due_to_the_location_is_that_of_a_two_way_layout() -> None:
    """Y = a_w + b_e + c_we, all independent: Var_w(E[Y | w]) is that of a, and a spurious part is taken off."""
    rng = np.random.default_rng(0)
    a, b, c = (s * rng.standard_normal(shape) for s, shape in ((2.0, (300, 1)), (1.0, (1, 200)), (0.5, (300, 200))))
    y = torch.from_numpy(a + b + c)[..., None, None]
    assert float(location_share(y)) == pytest.approx(4 / (4 + 1 + 0.25), abs=0.03)
    only = torch.from_numpy(a + np.zeros((1, 200)))[..., None, None]
    assert float(location_share(only)) == pytest.approx(1.0)
    luck = torch.from_numpy(b + np.zeros((300, 1)))[..., None, None]
    assert float(location_share(luck)) == pytest.approx(0.0, abs=1e-12)
    assert float(location_share(torch.zeros(3, 4, 1, 1).double())) == 0.0


def test_the_share_is_not_raised_by_few_draws() -> None:
    """With six draws of pure luck the variance of their means is a sixth of theirs; the correction takes it off."""
    rng = np.random.default_rng(1)
    y = torch.from_numpy(rng.standard_normal((12, 6, 2000, 1)))
    plain = y.mean(1).var(0)
    assert float(plain.mean()) == pytest.approx(1 / 6, rel=0.05)
    assert float(location_share(y).mean()) < 0.06  # half of it, since no share is negative
    shifted = y + torch.from_numpy(rng.standard_normal((12, 1, 2000, 1)))
    assert float(location_share(shifted).mean()) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("task", ["slow", "fast"])
def test_the_best_continuation_is_at_the_best_rate(model: TraceModel, task: str) -> None:
    start = replace(run(task, BEST[task], (0.5, 0.5, 0.5), 9).head(6), task=task)
    for before, done in ((None, 0), (start, 1)):
        ensemble = TaskEnsemble((model,), task, SPACE, before, done)
        assert len(ensemble.lengths) == 3 - done
        x, end = ensemble.best_continuation(0.5, SEARCH, generator())
        assert x.shape == (3 - done,)
        assert x.numpy() == pytest.approx(np.full(3 - done, BEST[task]), abs=0.12)
        careful = ensemble.best_continuation(0.1, SEARCH, generator())[1]
        assert careful < end
        reached = float(model.encoder.to_user(torch.tensor([end], dtype=torch.float64))[0])
        assert reached == pytest.approx(2.0 if before is None else float(start.last_value) - 2.0, abs=0.25)


def test_a_continuation_for_several_locations_lies_between_theirs(model: TraceModel) -> None:
    embedding, search = model.posterior.hyper.embedding, replace(SEARCH, gradient_steps=3)
    slow, fast = (model.with_task("new", embedding[model.encoder.tasks.index(task)]) for task in ("slow", "fast"))
    means = [
        float(TaskEnsemble(models, "new", SPACE).best_continuation(0.3, search, generator())[0].mean())
        for models in ((slow,), (slow, fast), (fast,))
    ]
    assert means[0] < means[1] < means[2]


def test_a_probe_goes_where_locations_differ(model: TraceModel) -> None:
    posterior = TaskPosterior.from_prior(model, "new", location_prior_of("gaussian", model), 8, generator())
    ensemble = TaskEnsemble(posterior.models, "new", SPACE)
    x, share = ensemble.best_probe(1, SEARCH, generator())
    assert x.shape == (1,)
    assert 0 < share <= 1
    assert min(float(x[0]), 1 - float(x[0])) < 0.3  # the tasks are told apart at either end, not in the middle
    one = TaskEnsemble((posterior.models[0],) * 4, "new", SPACE)
    assert one.best_probe(1, replace(SEARCH, grid=3), generator())[1] == pytest.approx(0.0, abs=1e-9)
