"""Runners hold the trainings of several tasks: a run begins from its own task's state and sees its own task's data."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.runner import Local, Runner
from paceline.runner.streams import Streams
from paceline.study import Checkpoints, Interval, Report
from paceline.training import TorchTraining
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

STEPS = 40
SCHEDULE = Schedule.of("linear", 1e-2, STEPS)


def task(number: int) -> TorchTraining:
    """Digits with their labels turned by a number: a family whose members cannot be mistaken for each other."""
    training = device_digits(evaluate="none")
    batches = training.batches.source
    batches.tensors = (batches.tensors[0], (batches.tensors[1] + number) % 10)
    with torch.no_grad():
        training.model[4].bias += number
    return training


def run_tasks(runner: Runner, folder: Path, tasks: list[int]) -> list[Report]:
    """One run of each of these tasks, in two intervals."""
    runner.attach(Checkpoints(folder), 0)
    for number in sorted(set(tasks)):
        runner.prepare(number)
    reports = list[Report]()
    for start, stop in ((0, STEPS // 2), (STEPS // 2, STEPS)):
        intervals = [Interval(fork, None, start, stop, SCHEDULE, 1, number) for fork, number in enumerate(tasks)]
        reports += sorted(runner.run(intervals), key=lambda report: report.fork)
    runner.close()
    return reports


@pytest.mark.parametrize("forks", [None, 1, 2])
def test_tasks_of_a_family_run_beside_each_other_as_they_do_alone(tmp_path: Path, forks: int | None) -> None:
    tasks, makers = [0, 2, 1, 2, 0], [partial(task, number) for number in range(3)]
    turn = run_tasks(Local(makers), tmp_path / "turn", tasks)
    side = run_tasks(Streams(makers, make_stream=HostWorkStream, forks=forks), tmp_path / "side", tasks)
    alone = run_tasks(Local(partial(task, 1)), tmp_path / "alone", [0])
    assert [r.failure for r in (*turn, *side)] == [None] * 20
    for a, b in zip(turn, side, strict=True):
        assert (a.fork, a.steps) == (b.fork, b.steps)
        np.testing.assert_allclose(a.values["averaged"], b.values["averaged"], rtol=1e-3)
    assert [r.values for r in turn if r.fork == 2] == [r.values for r in alone]
    assert turn[0].values == turn[4].values
    assert turn[0].values != turn[1].values
