"""A family of tasks as text and tables."""

from pathlib import Path

import numpy as np
from rich.table import Table

from paceline.study import Created, Decided, Report
from paceline.views.family import (
    answers_table,
    describe_budget,
    describe_family,
    family_result,
    nearest_tasks,
    run_lines,
)
from paceline.views.projection import study_view
from tests.views.studies import golden

FAMILY = golden("journal-1-family")


def cells(table: Table, column: int) -> list[str]:
    """The text of a column."""
    return [str(cell) for cell in table.columns[column].cells]


def test_the_settings_in_one_line() -> None:
    view = study_view(FAMILY)
    line = describe_family(view)
    assert line.startswith(f"{len(view.tasks)} tasks; schedules of 2 rates from ")
    assert describe_budget(view.settings["strategy"]["budget"], view.steps) in line
    assert line.count("judged by raw weights, smaller is better") == 1


def test_a_row_for_each_task_with_its_answer_and_its_best_run() -> None:
    view = study_view(FAMILY)
    table = answers_table(view)
    assert cells(table, 0) == list(view.answers)
    assert cells(table, 3) == [str(view.best_runs[task].fork) for task in view.answers]
    first = next(iter(view.answers.values()))
    assert cells(table, 1)[0] == ", ".join(f"{rate:.4g}" for rate in first.schedule.multipliers)


def test_the_result_of_a_family_that_runs_and_of_one_that_is_over() -> None:
    over = family_result(study_view(FAMILY), Path("runs") / "family")
    assert isinstance(over[0], Table)
    assert over[-1] == "to use a schedule elsewhere: paceline export runs/family --task calm --format python"
    (running,) = family_result(study_view(FAMILY[:-1]), Path("runs"))
    budget = study_view(FAMILY).settings["strategy"]["budget"]
    assert isinstance(running, str)
    assert running.startswith(f"not over: {budget} of {budget} runs are done; best so far: ")


def test_decisions_and_reports_have_lines() -> None:
    for i, event in enumerate(FAMILY):
        lines = run_lines(event, study_view(FAMILY[: i + 1]))
        assert len(lines) == (1 if isinstance(event, Decided | Report) else 0)
        if isinstance(event, Report):
            assert lines[0].startswith(f"run {event.fork} of task ")


def test_the_nearest_task_of_each() -> None:
    locations = {"a": np.array([0.0]), "b": np.array([1.0]), "c": np.array([5.0])}
    assert nearest_tasks(locations) == [
        "in the model 'a' is nearest to 'b', 'b' is nearest to 'a', 'c' is nearest to 'b'"
    ]
    assert nearest_tasks({name: locations[name] for name in "ab"}) == []
    assert nearest_tasks({name: np.array([]) for name in "abc"}) == []


def test_costs_and_coordinates_of_tasks_are_shown() -> None:
    created, *rest = FAMILY
    assert isinstance(created, Created)
    tasks = created.settings["tasks"]
    given = {
        "costs": dict.fromkeys(tasks, 0.25),
        "budget": 2.5,
        "at": {task: {"rows": 100.0 * i} for i, task in enumerate(tasks)},
        "wanted": tasks[:1],
    }
    settings = {**created.settings, "strategy": {**created.settings["strategy"], **given}}
    view = study_view([Created(settings), *rest])
    line = describe_family(view)
    assert "at a cost of 2.5 in all; judged by raw weights" in line
    assert f"wanted: {tasks[0]!r}; costs: {tasks[0]!r} 0.25, " in line
    assert "known coordinates: rows" in line
    table = answers_table(view)
    assert cells(table, 1) == [f"{100 * i}" for i in range(len(tasks))]
    runs = len(view.forks)
    assert (view.cost_done, view.share_done) == (0.25 * runs, 0.25 * runs / 2.5)
    (running,) = family_result(study_view([Created(settings), *rest[:-1]]), Path("runs"))
    assert f"{runs} runs are done (runs at a cost of {0.25 * runs:.3g} of 2.5 " in str(running)
