"""The schedules with the best quantile of the final value."""

import torch

from paceline import TraceModel
from paceline.model import Normals
from paceline.settings import SearchBudget
from paceline.strategy.future_runs import FutureRuns
from paceline.strategy.multitask import best_schedules
from tests.strategy.multitask.drawn_runs import SPACE


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_best_schedules_beat_random_ones(model: TraceModel) -> None:
    lengths, search = SPACE.lengths(model), SearchBudget(draws=64, grid=9, gradient_steps=0)
    for alpha in (0.2, 0.9):
        best = best_schedules(model, alpha, lengths, search, generator=generator())
        normals = Normals.draw(model.link.latents, 300, 5, generator(9))
        for task in range(3):
            others = torch.rand(40, 5, generator=generator(3)).double()
            x = torch.cat([best[task : task + 1], others])
            with torch.no_grad():
                finals = FutureRuns(model, torch.full((41,), task), lengths, normals).finals(x)
            score = torch.quantile(finals, alpha, dim=1)
            assert int((score > score[0]).sum()) <= 1
        assert bool(((best >= 0) & (best <= 1)).all())


def test_gradient_steps_reach_higher_than_sweeps(model: TraceModel) -> None:
    lengths, normals = SPACE.lengths(model), Normals.draw(model.link.latents, 400, 5, generator(9))
    tasks, ends = torch.arange(3), dict[int, torch.Tensor]()
    for steps in (0, 15):
        search = SearchBudget(draws=64, grid=5, sweeps=1, gradient_steps=steps)
        x = best_schedules(model, 0.5, lengths, search, generator=generator())
        assert bool(((x >= 0) & (x <= 1)).all())
        with torch.no_grad():
            ends[steps] = model.draw_batch(x.T[..., None], tasks[:, None], normals.expand(3), lengths).values[..., -1]
    assert float(ends[15].mean()) > float(ends[0].mean()) - 0.005


def test_schedules_come_in_the_order_of_the_names(small_model: TraceModel) -> None:
    lengths, search = SPACE.lengths(small_model), SearchBudget(draws=8, grid=3, sweeps=1, gradient_steps=1)
    x = best_schedules(small_model, 0.5, lengths, search, generator=generator(), tasks=["c", "a"])
    whole = best_schedules(small_model, 0.5, lengths, search, generator=generator())
    torch.testing.assert_close(x, whole[[2, 0]])
