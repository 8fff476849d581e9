"""Traces: tables, forks, growth and messages for wrong arguments."""

import numpy as np
import pytest

from paceline import InputError, Objective, Schedule, Trace

CONSTANT = Schedule.constant(0.1, 100)


def trace(steps=(0, 50, 100), values=(3.0, 2.0, 1.0), **fields) -> Trace:
    return Trace(np.array(steps), np.array(values), CONSTANT, **fields)


def test_a_table_becomes_a_trace() -> None:
    log = Trace.from_table([0, 10, 20], [0.1, 0.1, 0.01], [3.0, 2.0, 1.5], name="log", task="a")
    assert (log.schedule(5), log.last_step, log.last_value, log.name, log.task) == (0.1, 20, 1.5, "log", "a")
    assert not log.failed


def test_a_table_with_a_value_that_is_not_finite_ends_there_as_failed() -> None:
    log = Trace.from_table([0, 1, 2, 3], [0.1] * 4, [3.0, 2.0, np.nan, 5.0])
    assert log.failed
    assert log.steps.tolist() == [0, 1, 2]


def test_a_table_may_begin_before_the_first_value() -> None:
    log = Trace.from_table([0, 1, 2, 3], [0.1] * 4, [np.nan, 2.0, 1.5, 1.0])
    assert (log.steps.tolist(), log.failed) == ([1, 2, 3], False)


def test_a_prefix_of_a_failed_run_has_not_failed() -> None:
    run = trace(values=(3.0, 2.0, np.nan), failed=True)
    assert run.head(3).failed
    assert not run.head(2).failed


def test_a_fork_from_before_its_parents_fork_has_the_history_of_the_grandparent() -> None:
    parent = trace()
    child = parent.fork([60, 70], [5.0, 6.0], CONSTANT, at=50)
    early = child.fork([40], [2.5], CONSTANT, at=30)
    assert early.fork_steps() == [30]
    assert early.path()[0].tolist() == [0, 40]


def test_arrays_are_read_only_copies() -> None:
    values = np.array([3.0, 2.0, 1.0])
    copy = trace(values=values)
    values[0] = 99.0
    assert copy.values[0] == 3.0
    with pytest.raises(ValueError, match="read-only"):
        copy.values[0] = 1.0


def test_a_fork_has_its_own_observations_and_the_history_of_its_parents() -> None:
    parent = trace(objective=Objective(mode="max"), task="t")
    child = parent.fork([60, 70], [5.0, 6.0], CONSTANT, at=50)
    grandchild = child.fork([65], [7.0], CONSTANT, at=60)
    steps, values = grandchild.path()
    assert steps.tolist() == [0, 50, 60, 65]
    assert values.tolist() == [3.0, 2.0, 5.0, 7.0]
    assert grandchild.fork_steps() == [50, 60]
    assert (child.objective, child.task) == (parent.objective, "t")


def test_head_and_extend() -> None:
    assert trace().head(2).steps.tolist() == [0, 50]
    assert trace().head(2).extend([100], [1.0]).values.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: trace(steps=(0, 50, 50)), "steps must increase, got 50 followed by 50: sort"),
        (lambda: trace(steps=(0, 50, 20), name="r"), "trace 'r': steps must increase"),
        (lambda: trace(steps=(-1, 50, 100)), "whole numbers from 0 on"),
        (lambda: trace(steps=(0.5, 50, 100)), "whole numbers from 0 on"),
        (
            lambda: trace(values=(1.0, np.nan, 2.0)),
            "values must be finite and below 1e100, got nan at step 50: pass failed=True",
        ),
        (lambda: trace(values=(1.0, 2.0)), "two columns of equal length"),
        (lambda: Trace(np.array(["a", "b"]), np.array([1.0, 2.0]), CONSTANT), "must be numbers"),
        (
            lambda: Trace(np.array([5, 3], dtype=np.uint64), np.array([1.0, 2.0]), CONSTANT),
            "steps must increase, got 5 followed by 3",
        ),
        (lambda: Trace.from_table([0, np.nan], [0.1, 0.1], [1.0, 1.0]), "must be finite and increase"),
        (lambda: trace(steps=(), values=()), "at least one observation, got none"),
        (lambda: trace().fork([110], [1.0], CONSTANT, at=105), "within its parent's steps 0..100, got 105"),
        (lambda: trace().fork([40], [1.0], CONSTANT, at=50), "own steps come after fork_step 50, got 40"),
        (lambda: trace().head(0), "at least 1 observation, got 0"),
        (
            lambda: Trace.from_table([0, 1], [0.1, 0.1], [np.nan, np.inf]),
            "at least one finite value, got 2 that are not",
        ),
        (lambda: Trace.from_table([0, 1], [0.1, 0.1], [1.0]), "equal length"),
        (lambda: Trace.from_table([1, 0], [0.1, 0.1], [1.0, 1.0]), "sort the table"),
    ],
)
def test_wrong_arguments_say_what_to_do(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
