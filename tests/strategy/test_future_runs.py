"""Draws of runs to come, and the search for the rates with the best final value."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.errors import InputError
from paceline.model import Normals
from paceline.settings import SearchBudget
from paceline.strategy.future_runs import FutureRuns, climb, final_quantile, search, task_numbers
from tests.strategy.newtask.example_family import BEST, FAMILY, SPACE, run, runs_of_the_family

TASKS = ("fast", "slow")
SEARCH = SearchBudget(draws=16, grid=5, sweeps=2)


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return FAMILY.fit(runs_of_the_family())


def futures(model: TraceModel, tasks: tuple[str, ...] = TASKS, start=None, left: int = 3) -> FutureRuns:
    normals = Normals.draw(model.link.latents, 16, left, torch.Generator().manual_seed(0))
    return FutureRuns.of(model, tasks, SPACE.lengths(model)[:left], normals, start)


def test_tasks_are_numbered_as_the_model_has_them(model: TraceModel) -> None:
    assert [model.encoder.tasks[number] for number in task_numbers(model, TASKS)] == list(TASKS)
    assert task_numbers(model, None).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="task must be one of those fitted"):
        task_numbers(model, ["new"])


def test_the_search_finds_the_best_rate_of_each_task(model: TraceModel) -> None:
    x, best = search([futures(model)], final_quantile(0.5), 3, SEARCH)
    expected = np.array([[BEST[task]] * 3 for task in TASKS])
    np.testing.assert_allclose(x.numpy(), expected, atol=0.12)
    final = futures(model).finals(x)
    torch.testing.assert_close(best, torch.quantile(final, 0.5, dim=1))


def test_intervals_one_after_the_other_make_the_whole_run(model: TraceModel) -> None:
    runs, x = futures(model), torch.tensor([[0.2, 0.6, 0.4], [0.9, 0.1, 0.3]], dtype=torch.float64)
    state = runs.state()
    for k in range(3):
        state = runs.advance(state, x[:, k], k)
    torch.testing.assert_close(state.values[0], runs.finals(x))


def test_a_start_that_is_better_than_the_sweep_is_kept(model: TraceModel) -> None:
    """Without sweeps on the final value, and with a grid that misses the best rate."""
    coarse = SearchBudget(draws=16, grid=2, sweeps=0)
    ideal = torch.tensor([[BEST[task]] * 3 for task in TASKS], dtype=torch.float64)
    x, best = search([futures(model)], final_quantile(0.5), 3, coarse, starts=ideal[None])
    torch.testing.assert_close(x, ideal)
    assert bool((best > search([futures(model)], final_quantile(0.5), 3, coarse)[1]).all())


def test_no_rate_above_the_highest_is_tried(model: TraceModel) -> None:
    highest = torch.tensor([0.6, 0.1], dtype=torch.float64)
    starts = torch.ones((1, 2, 3), dtype=torch.float64)
    x, _ = search([futures(model)], final_quantile(0.5), 3, SEARCH, starts=starts, highest=highest)
    x = climb([futures(model)], 0.5, x, 5, highest)
    assert bool((x <= highest[:, None]).all())
    np.testing.assert_allclose(x.numpy(), [[0.6] * 3, [0.1] * 3], atol=0.05)  # the best rates lie above


def test_a_run_goes_on_from_where_it_is(model: TraceModel) -> None:
    start = replace(run("slow", 0.2, (0.2, 0.2, 0.2), 9).head(6), task="slow")
    runs = futures(model, ("slow",), start, left=2)
    x, _ = search([runs], final_quantile(0.5), 2, SEARCH)
    assert x.shape == (1, 2)
    (end,) = model.encoder.to_user(runs.finals(x).median()[None])
    assert end == pytest.approx(float(start.last_value) - 2.0, abs=0.3)


def test_climbing_raises_the_final_value(model: TraceModel) -> None:
    runs, begin = futures(model), torch.full((2, 3), 0.5, dtype=torch.float64)
    x = climb([runs], 0.5, begin, 10)
    assert bool((runs.finals(x).mean(1) > runs.finals(begin).mean(1)).all())
    torch.testing.assert_close(climb([runs], 0.5, begin, 0), begin)


def test_several_models_count_alike(model: TraceModel) -> None:
    y = torch.arange(24, dtype=torch.float64).reshape(2, 1, 3, 4, 1)  # models, tasks, draws, tried, ends
    score = final_quantile(0.5)(y)
    assert score.shape == (1, 4)
    torch.testing.assert_close(score[0, 0], torch.quantile(y[:, 0, :, 0, 0].flatten(), 0.5))
