"""Schedules as numbers in [0, 1], and the initial design."""

import numpy as np
import pytest

from paceline import Schedule, Trace, TraceModel
from paceline.errors import InputError
from paceline.shapes import WarmupStableDecay
from paceline.strategy.multitask import Space, as_floats, initial_runs
from paceline.traces import LearningRateRange
from tests.strategy.multitask.drawn_runs import SPACE, drawn_family, drawn_runs


def test_the_initial_design_fills_every_cell_once_and_tasks_take_turns() -> None:
    for count in (5, 7, 10):
        runs = initial_runs(SPACE, ["a", "b", "c", "d", "e"], count, seed=3)
        x = np.array([run.x for run in runs])
        assert all(sorted(np.floor(x[:, k] * count)) == list(range(count)) for k in range(5))
        by_task = [sum(run.task == task for run in runs) for task in "abcde"]
        assert max(by_task) - min(by_task) <= 1
    assert initial_runs(SPACE, ["a"], 4, seed=1) == initial_runs(SPACE, ["a"], 4, seed=1)
    with pytest.raises(InputError, match="a model needs runs to begin with"):
        initial_runs(SPACE, ["a"], 0, seed=1)


def test_x_of_a_schedule_is_the_x_it_was_made_of() -> None:
    x = (0.1, 0.9, 0.4, 0.5, 0.7)
    schedule = SPACE.schedule(x)
    assert isinstance(schedule, Schedule)
    np.testing.assert_allclose(SPACE.x_of(schedule), x, atol=1e-9)
    assert as_floats(np.array(x)) == x


@pytest.mark.parametrize("base", ["constant", WarmupStableDecay(warmup=0.02, decay=0.7)])
def test_both_bases_give_the_model_the_same_controls(base) -> None:
    space = Space(LearningRateRange(1e-4, 1e-1), steps=200, intervals=5, base=base)
    x, steps = (0.1, 0.9, 0.4, 0.5, 0.7), np.arange(0, 201, 5)
    values = 3 * np.exp(-0.01 * np.arange(41))
    traces = [Trace(steps, values, space.schedule(np.roll(x, i)), name=str(i), task="a") for i in range(3)]
    family = drawn_family(tasks=("a",), dims=0, base=base)
    model, schedule = family.fit(traces), space.schedule(x)
    np.testing.assert_allclose(model.encoder.future(schedule, 0).unit_lr, x, atol=1e-9)
    (choice,) = family.propose(model, traces)
    assert space.schedule(choice.run.x).base == schedule.base


def test_a_model_with_other_intervals_is_refused() -> None:
    other = TraceModel.fit(drawn_runs(2), intervals=10, tasks=1)
    with pytest.raises(InputError, match="expected a model of 5 intervals, got one that cuts a run into 10"):
        SPACE.lengths(other)


def test_more_intervals_than_steps_are_refused() -> None:
    with pytest.raises(InputError, match="intervals must lie between 1 and the 60 steps of a run, got 61"):
        Space(LearningRateRange(1e-4, 1e-1), steps=60, intervals=61)
