"""Algorithm 2 as a function of the runs so far: what is proposed, the answers, and their limits."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import LearningRateRange, Objective, Trace, TraceModel
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.settings import FamilySettings
from paceline.strategy import Goal
from paceline.strategy.multitask import Family, Space, initial_runs
from paceline.strategy.multitask.infill import decision_cost
from tests.strategy.multitask.drawn_runs import BOUNDS, INFILL, SEARCH, SPACE, TASKS, drawn_family, drawn_runs


def test_decisions_repeat_and_batches_differ(small_model: TraceModel, two_runs: list[Trace]) -> None:
    family = drawn_family()
    one, two = family.propose(small_model, two_runs, count=2)
    (again,) = family.propose(small_model, two_runs)
    assert again.run == one.run
    assert again.cost == decision_cost(SEARCH, INFILL, 3, 5) > 0
    assert one.run != two.run
    assert two.before < one.before  # as if the first had been made
    assert one.after < one.before
    (later,) = family.propose(small_model, two_runs, under_way=[one.run])
    assert later.before == pytest.approx(two.before, rel=0.5)
    assert later.run != one.run


def test_the_optimistic_set_can_be_run_itself(small_model: TraceModel, two_runs: list[Trace]) -> None:
    family = drawn_family(infill="optimistic")
    choices = family.propose(small_model, two_runs, count=3)
    assert {choice.run.task for choice in choices} == set(TASKS)
    for choice in choices:
        assert choice.run.x == tuple(choice.reference[TASKS.index(choice.run.task)].tolist())
        assert choice.rivals == {choice.run.task: choice.after}
    (following,) = family.propose(small_model, [*two_runs, replace(two_runs[0], name="new")])
    assert following.run.task != two_runs[0].task  # the task with fewest runs


def test_some_tasks_can_be_left_out(small_model: TraceModel, two_runs: list[Trace]) -> None:
    (choice,) = drawn_family().propose(small_model, two_runs, tasks=["c"])
    assert choice.run.task == "c"
    assert list(choice.rivals) == ["c"]


def test_answers_are_schedules_with_what_they_should_reach(small_model: TraceModel, two_runs: list[Trace]) -> None:
    family = drawn_family()
    answers = family.answers(small_model, two_runs)
    assert list(answers) == list(TASKS)
    for answer in answers.values():
        low, middle, high = answer.quantiles
        assert low <= middle <= high
        np.testing.assert_array_equal(answer.schedule.change_points, SPACE.change_points)
    careful = family.answers(small_model, two_runs, alpha=0.1)
    assert all(careful[task].quantiles[0] >= answers[task].quantiles[0] - 0.05 for task in TASKS)


def test_answers_belong_to_their_names_in_any_order(small_model: TraceModel, two_runs: list[Trace]) -> None:
    """The goal's order of tasks counts, not the model's."""
    settings = {"tasks": ("c", "a", "b")}
    turned = drawn_family(**settings).answers(small_model, two_runs)
    assert list(turned) == ["c", "a", "b"]
    plain = drawn_family().answers(small_model, two_runs)
    for task in TASKS:
        np.testing.assert_allclose(turned[task].schedule.multipliers, plain[task].schedule.multipliers)


def test_a_task_without_runs_is_proposed_for_too() -> None:
    family, runs = drawn_family(dims=2), drawn_runs(3, tasks=("a", "b"))
    model = family.fit(runs)
    assert set(model.encoder.tasks) == set(TASKS)
    (choice,) = family.propose(model, runs)
    assert choice.run.task in TASKS
    assert set(family.answers(model, runs)) == set(TASKS)
    with pytest.raises(InputError, match=r"expected runs of the tasks \['a', 'b', 'c'\], got \['z'\]"):
        family.fit([replace(runs[0], task="z")])


def test_tasks_of_known_runs_come_after_those_that_are_tuned() -> None:
    family = replace(drawn_family(tasks=("b", "c")), known_tasks=("a",))
    assert family.tasks == ("b", "c")
    assert family.all_tasks == ("b", "c", "a")
    assert len(family.initial_runs()) == 4
    assert {run.task for run in family.initial_runs()} == {"b", "c"}
    runs = drawn_runs(2)
    assert list(family.answers(family.fit(runs), runs)) == ["b", "c"]


@pytest.mark.parametrize("tasks", [(), ("a", "a")])
def test_names_must_differ(tasks: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="at least one different name"):
        Family(Goal(BOUNDS, 200, Objective(), tasks=tasks))


ROWS = {"few": 1 / 16, "some": 1 / 4, "all": 1.0}


def noisy_runs(task: str, count: int, space: Space) -> list[Trace]:
    """Runs of a noisy quadratic; its noise falls with the rows, so the best rates rise with them."""
    problem = Quadratic(0.3 / ROWS[task] ** 0.5, dims=20)
    runs = list[Trace]()
    for number, run in enumerate(initial_runs(space, [task], count, seed=len(task))):
        training = QuadraticTraining(problem, number, every=4)
        seen = list(training.advance(space.schedule(run.x), space.steps))
        steps, values = np.array([step for step, _ in seen]), np.array([value["raw"] for _, value in seen])
        runs.append(Trace(steps, values, space.schedule(run.x), task=task, objective=Objective(transform="log")))
    return runs


def test_a_task_without_runs_is_forecast_better_by_its_coordinates() -> None:
    goal = Goal(LearningRateRange(0.01, 1.5), 60, Objective(transform="log"), tasks=tuple(ROWS))
    at = {task: {"rows": rows} for task, rows in ROWS.items()}
    families = [Family(goal, FamilySettings(intervals=3, at=given)) for given in (None, at)]
    space = families[0].space
    runs = [run for task, count in (("few", 8), ("some", 5)) for run in noisy_runs(task, count, space)]
    schedules = [space.schedule(x) for x in np.random.default_rng(1).uniform(size=(8, 3))]
    expected = np.array([Quadratic(0.3, dims=20).expected_loss(schedule)[-1] for schedule in schedules])
    errors = list[float]()
    for family in families:
        model = family.fit(runs)
        medians = [model.forecast(schedule, [60], task="all", draws=200).median[0] for schedule in schedules]
        errors.append(float(np.abs(np.log(medians / expected)).mean()))
    assert errors[1] < 0.7 * errors[0]


def test_settings_name_the_tasks() -> None:
    goal = Goal(LearningRateRange(0.01, 1.5), 60, Objective(), tasks=("a", "b"))
    with pytest.raises(InputError, match=r"at must have coordinates of every task, got none of \['b'\]"):
        Family(goal, FamilySettings(at={"a": {"rows": 5}}))
    with pytest.raises(InputError, match=r"costs must have a cost for each of the tasks \['a', 'b'\], got \['a'\]"):
        Family(goal, FamilySettings(costs={"a": 5}))
    with pytest.raises(InputError, match=r"wanted must be among the tasks \['a', 'b'\], got \['c'\]"):
        Family(goal, FamilySettings(wanted=["a", "c"]))
