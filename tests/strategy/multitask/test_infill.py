"""The next run: the search for it, its cost, and its limits."""

from dataclasses import replace

import torch

from paceline import TraceModel
from paceline.settings import InfillBudget, SearchBudget
from paceline.strategy.multitask import LinearCriterion, next_run
from paceline.strategy.multitask.infill import decision_cost, screen
from tests.strategy.multitask.drawn_runs import INFILL, SEARCH, SPACE, TASKS


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_run_that_teaches_most_is_the_best_of_all_tasks(small_model: TraceModel) -> None:
    choice = next_run(small_model, SPACE, TASKS, alpha=0.8, search=SEARCH, infill=INFILL, generator=generator())
    assert set(choice.rivals) == set(TASKS)
    assert min(choice.rivals.values()) == choice.rivals[choice.run.task] == choice.after < choice.before
    assert choice.reference.shape == (3, 5)
    assert choice.cost == decision_cost(SEARCH, INFILL, 3, 5)


def test_an_optimistic_schedule_is_run_as_it_is(small_model: TraceModel) -> None:
    given = {"alpha": 0.8, "search": SEARCH, "infill": INFILL}
    for names in (("a", "b", "c"), ("c", "b")):
        choice = next_run(small_model, SPACE, names, **given, generator=generator(), optimistic_task="b")
        assert choice.run.task == "b"
        assert choice.run.x == tuple(choice.reference[1].tolist())
        assert choice.rivals == {"b": choice.after}


def test_every_task_is_run_within_its_safe_rates(small_model: TraceModel) -> None:
    given = {"alpha": 0.8, "search": SEARCH, "infill": INFILL}
    highest = torch.tensor([0.3, 0.2, 0.1], dtype=torch.float64)
    choice = next_run(small_model, SPACE, TASKS, **given, generator=generator(), highest=highest)
    assert bool((choice.reference <= highest[:, None]).all())
    assert max(choice.run.x) <= highest[TASKS.index(choice.run.task)]


def test_candidates_are_screened_by_their_gain(small_model: TraceModel, two_runs) -> None:
    reference = torch.rand(3, 5, generator=generator(1)).double()
    criterion = LinearCriterion.of(small_model, reference, SPACE.lengths(small_model))
    starts = screen(criterion, reference, replace(INFILL, starts=2, candidates=32), generator())
    assert starts.shape == (6, 5)
    gain = criterion.gain(starts, torch.arange(3).repeat_interleave(2))
    assert bool((gain[::2] >= gain[1::2]).all())  # the best first
    assert bool((gain[::2] >= criterion.gain(reference, torch.arange(3)) - 1e-12).all())


def test_the_cost_counts_intervals_drawn() -> None:
    search = SearchBudget(draws=2, grid=3, sweeps=1)
    infill = InfillBudget(candidates=4, starts=1, gradient_steps=2, rough_draws=2, outer_draws=4, inner_draws=4)
    searched, moved, compared = 2 * 1 * 3 * 2 * (2 + 1.5), 2 * 1 * 1 * 2 * 5 * 2, 1 * 1 * 4 * 5 * 2
    assert decision_cost(search, infill, tasks=1, intervals=2) == searched + moved + compared


GIVEN = {"alpha": 0.8, "search": SEARCH, "infill": INFILL}


def test_the_run_that_teaches_most_for_its_cost(small_model: TraceModel) -> None:
    plain = next_run(small_model, SPACE, TASKS, **GIVEN, generator=generator())
    equal = next_run(small_model, SPACE, TASKS, **GIVEN, generator=generator(), costs=dict.fromkeys(TASKS, 0.3))
    assert (equal.run, equal.rivals, equal.run_cost) == (plain.run, plain.rivals, 0.3)
    costs = {task: 100.0 if task == plain.run.task else 1.0 for task in TASKS}
    other = next_run(small_model, SPACE, TASKS, **GIVEN, generator=generator(), costs=costs)
    worth = {task: (other.before - after) / costs[task] for task, after in other.rivals.items()}
    assert other.rivals == plain.rivals
    assert other.run.task == max(worth, key=lambda task: worth[task]) != plain.run.task
    assert other.run_cost == 1


def test_only_tasks_with_a_cost_are_run_and_only_wanted_ones_count(small_model: TraceModel) -> None:
    every = next_run(small_model, SPACE, TASKS, **GIVEN, generator=generator())
    one = next_run(small_model, SPACE, TASKS, **GIVEN, generator=generator(), wanted=["b"], costs={"c": 1, "a": 1})
    assert set(one.rivals) == {"a", "c"}
    assert one.run.task in ("a", "c")
    torch.testing.assert_close(one.reference, every.reference)
    assert one.before != every.before
    assert one.cost == decision_cost(SEARCH, INFILL, 3, 5, wanted=1, candidates=2) < every.cost
