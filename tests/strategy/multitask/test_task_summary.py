"""The best run of each task, worse runs, and tasks that are given up."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import Objective, Schedule, Trace
from paceline.strategy import Fork, Goal, History
from paceline.strategy.multitask.task_summary import best_run_details, best_runs, failing_tasks, final_value, worse_runs
from paceline.study import Failure, because
from paceline.traces import LearningRateRange


def fork(number: int, task: int, value: float | None) -> Fork:
    """A run that ended at a value, or failed."""
    schedule = Schedule.constant(0.1, 20)
    if value is None:
        return Fork(number, None, 0, schedule, task=task, alive=False, failure=Failure("diverged"))
    trace = Trace(np.array([10, 20]), np.array([value + 1, value]), schedule)
    return Fork(number, None, 0, schedule, trace, task=task)


def history(*forks: Fork, mode: str = "min") -> History:
    return History(Goal(LearningRateRange(0.01, 1.0), 20, Objective(mode), tasks=("b", "a")), forks)


RUNS = (fork(0, 1, 3.0), fork(1, 0, 2.0), fork(2, 1, 2.5), fork(3, 0, None), fork(4, 1, 4.0))


def test_the_best_run_of_each_task_is_kept() -> None:
    now = history(*RUNS)
    assert {task: run.id for task, run in best_runs(now).items()} == {0: 1, 1: 2}
    assert worse_runs(now) == (
        (0, because("worse run", best=2, best_value=2.5, value=3.0)),
        (4, because("worse run", best=2, best_value=2.5, value=4.0)),
    )
    assert best_run_details(now) == {
        "best": [{"task": "b", "fork": 1, "value": 2.0}, {"task": "a", "fork": 2, "value": 2.5}]
    }
    largest = history(*RUNS, mode="max")
    assert {task: run.id for task, run in best_runs(largest).items()} == {0: 1, 1: 4}


def test_a_task_without_any_run_that_ended_is_given_up() -> None:
    failed = [fork(number, 0, None) for number in range(3)]
    assert failing_tasks(history(*failed), 3) == ["b"]
    assert failing_tasks(history(*failed), 4) == []
    assert failing_tasks(history(*failed[:2], RUNS[1]), 3) == []


def test_the_final_value_is_a_mean_of_the_last_ones_if_there_is_one() -> None:
    objective = Objective("min", weights="raw")
    assert final_value(RUNS[0], objective) == pytest.approx(3.0)
    assert final_value(replace(RUNS[0], final_means={"raw": 3.5}), objective) == pytest.approx(3.5)
