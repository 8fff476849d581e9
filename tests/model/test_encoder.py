"""Runs as numbers: inputs, intervals to come, and the past of a run."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import InputError, Schedule, Trace
from paceline.model.encoder import TraceEncoder
from paceline.shapes import Linear
from paceline.traces import Clock, LearningRateRange, Scaling, Segmenter
from tests.model.example_runs import decay

SEGMENTER = Segmenter(Clock("step", 200), np.array([0, 100, 200]), 2, None, decay(1e-2).objective)
ENCODER = TraceEncoder(SEGMENTER, Scaling(-4.0, 4.0, 100.0, LearningRateRange(1e-4, 1e-2)), ("a", "b"))


def test_inputs_are_values_rates_and_task_newest_first() -> None:
    run = replace(decay(1e-2, task="b"), schedule=Schedule([1e-2, 1e-4], [0, 100, 200]))
    first, middle = (float(run.values[i]) for i in (0, 10))
    z = ENCODER.inputs(SEGMENTER.split(run))
    scaled = [(4 - value) / 4 for value in (first, middle)]
    np.testing.assert_allclose(z[0].numpy(), [scaled[0], scaled[0], 1, 1, 1])
    np.testing.assert_allclose(z[1].numpy(), [scaled[1], scaled[0], 0, 1, 1])


def test_intervals_to_come_begin_at_a_step_and_reach_the_last_one_asked_for() -> None:
    schedule = Schedule([1e-2, 1e-3], [0, 100, 200])
    future = ENCODER.future(schedule, 50)
    assert future.edges.tolist() == [50, 100, 200]
    np.testing.assert_allclose(future.unit_lr, [1, 0.5])
    np.testing.assert_allclose(future.lengths, [0.5, 1])
    assert ENCODER.future(schedule, 0, 60).edges.tolist() == [0, 100]
    assert ENCODER.future(schedule, 0, 250).edges.tolist() == [0, 100, 200, 300]


def test_the_past_of_a_run_is_newest_first() -> None:
    run = replace(decay(1e-2, task="a"), schedule=Schedule([1e-2, 1e-4], [0, 100, 200])).head(16)
    past = ENCODER.past(run)
    np.testing.assert_allclose(past.values, (4 - run.values[[15, 10]]) / 4)
    np.testing.assert_allclose(past.unit_lr, [0.0], atol=1e-12)
    assert past.rate_sum == pytest.approx(0.5 * 1e-2 + 0.25 * 1e-4)
    assert past.last is not None
    assert (past.last.start, past.last.stop) == (100, 150)
    single = ENCODER.past(run.head(1))
    assert (single.last, single.values.tolist()) == (None, pytest.approx([(4 - run.values[0]) / 4] * 2))


def test_values_come_back_in_the_users_units() -> None:
    import torch

    assert ENCODER.to_user(torch.tensor([0.0, 1.0]).double()).tolist() == [4.0, 0.0]


def test_tasks_have_numbers_and_new_ones_come_last() -> None:
    assert ENCODER.task_number("b") == 1
    assert ENCODER.with_tasks(["d", "b", "c"]).tasks == ("a", "b", "c", "d")
    assert replace(ENCODER, tasks=()).with_tasks(["d"]).tasks == ()
    assert replace(ENCODER, tasks=()).task_number(None) is None
    with pytest.raises(InputError, match=r"one of those fitted, \['a', 'b'\], got 'c'"):
        ENCODER.task_number("c")


def test_a_run_without_a_finite_value_is_refused() -> None:
    lost = Trace(np.array([0]), np.array([np.nan]), Schedule.constant(1e-2, 200), failed=True)
    with pytest.raises(InputError, match="starts from a finite value"):
        ENCODER.past(lost)


def test_schedules_on_another_base_are_refused() -> None:
    encoder = replace(ENCODER, segmenter=replace(SEGMENTER, base=Linear()))
    encoder.check_base(Schedule.of("linear", 1e-2, 200))
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Cosine.*same base"):
        encoder.check_base(Schedule.of("cosine", 1e-2, 200))
