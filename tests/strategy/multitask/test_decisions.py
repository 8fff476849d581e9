"""The decisions of Algorithm 2 as data."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import Trace, TraceModel
from paceline.strategy import Fork, History
from paceline.strategy.multitask import Run
from paceline.strategy.multitask.decisions import (
    all_failed_decision,
    final_decision,
    infill_decision,
    initial_decision,
    lower_decision,
    whole_runs,
)
from paceline.study import Failure, because
from tests.strategy.multitask.drawn_runs import SPACE, TASKS, drawn_family

FAMILY = drawn_family()
X = (0.1, 0.9, 0.4, 0.5, 0.7)


def history(count: int = 0, failed: int = 0) -> History:
    """So many runs of the first task, the last ones failed."""
    schedule, steps = SPACE.schedule(X), np.array([100, 200])
    forks = [Fork(i, None, 0, schedule, Trace(steps, np.array([2.0, 1.0 + i]), schedule), task=0) for i in range(count)]
    for i in range(count - failed, count):
        forks[i] = replace(forks[i], trace=None, alive=False, failure=Failure("not finite", step=3))
    return History(FAMILY.goal, tuple(forks), round=count)


def test_runs_are_numbered_on_and_go_to_the_end() -> None:
    intervals = whole_runs(FAMILY, history(2), [Run("c", X), Run("a", X)])
    assert [(each.fork, each.parent, each.start, each.stop, each.round, each.task) for each in intervals] == [
        (2, None, 0, 200, 3, 2),
        (3, None, 0, 200, 3, 0),
    ]
    assert intervals[0].schedule == SPACE.schedule(X)


def test_the_initial_design_says_which_of_its_runs_these_are() -> None:
    decision = initial_decision(FAMILY, history(1), [Run("b", X)], 4)
    (reason,) = decision.reasons
    assert (reason.kind, reason["first"], reason["total"]) == ("initial design", 2, 4)
    (row,) = reason["runs"]
    assert (row["fork"], row["task"], row["multipliers"]) == (1, "b", False)
    assert row["rates"] == decision.intervals[0].schedule.multipliers.tolist()


def test_worse_runs_are_dropped_with_every_decision() -> None:
    for decision in (lower_decision(FAMILY, history(3), [Run("a", X)]), all_failed_decision(history(3))):
        assert [fork for fork, _ in decision.drops] == [1, 2]
        assert decision.details["best"] == [{"task": "a", "fork": 0, "value": 1.0}]


def test_without_a_value_the_next_runs_are_lower() -> None:
    assert lower_decision(FAMILY, history(2, failed=2), [Run("a", X)]).reasons == (because("no value yet", runs=1),)
    over = all_failed_decision(history(2, failed=2))
    assert over.intervals == ()
    assert over.reasons == (because("all runs failed", runs=2),)


@pytest.fixture(scope="module")
def infill(small_model: TraceModel, two_runs: list[Trace]):
    choices = FAMILY.propose(small_model, two_runs)
    return choices, infill_decision(FAMILY, history(6), small_model, choices, ["c"])


def test_a_run_is_chosen_for_what_it_teaches(infill) -> None:
    (choice,), decision = infill
    reason, given_up = decision.reasons
    assert (reason.kind, reason["fork"], reason["task"]) == ("informative run", 6, choice.run.task)
    assert (reason["before"], reason["after"]) == (choice.before, choice.after)
    rivals = [(row["task"], row["variance"]) for row in reason["rivals"]]
    assert rivals == sorted(((t, v) for t, v in choice.rivals.items() if t != choice.run.task), key=lambda row: row[1])
    assert given_up == because("task given up", task="c", runs=3)
    assert set(decision.details) == {"best", "forecast", "infill", "embedding"}


def test_the_last_decision_has_an_answer_for_each_task(small_model: TraceModel, two_runs: list[Trace]) -> None:
    decision = final_decision(FAMILY, history(6, failed=1), small_model, two_runs)
    assert decision.intervals == ()
    assert decision.reasons == (because("answers", runs=6, failed=1),)
    assert [answer["task"] for answer in decision.details["answers"]] == list(TASKS)
