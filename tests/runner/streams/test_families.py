"""Runners hold the trainings of several tasks: a run begins from its own task's start and sees its own task's data."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.runner import Local, Runner, Streams
from paceline.study import Checkpoints, Interval, Report
from paceline.training import TorchTraining
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

STEPS = 40


def rotated_digits(number: int) -> TorchTraining:
    """Digits with their labels rotated by a number: no two tasks can be mistaken for each other."""
    training = device_digits(evaluate="none")
    batches = training.batches.source
    batches.tensors = (batches.tensors[0], (batches.tensors[1] + number) % 10)
    with torch.no_grad():
        training.model[4].bias += number
    return training


def reports(runner: Runner, folder: Path, tasks: list[int]) -> list[Report]:
    """One run of each of these tasks, in two intervals."""
    runner.attach(Checkpoints(folder), 0)
    schedule, received = Schedule.of("linear", 1e-2, STEPS), list[Report]()
    for task in sorted(set(tasks)):
        runner.prepare(task)
    for round_, (start, stop) in enumerate(((0, STEPS // 2), (STEPS // 2, STEPS)), 1):
        intervals = [
            Interval(10 + i, None, start, stop, schedule, round_, task) for i, task in enumerate(tasks)
        ]  # numbers of forks that are no numbers of tasks
        received += sorted(runner.run(intervals), key=lambda report: report.fork)
    runner.close()
    return received


@pytest.mark.parametrize("forks", [None, 1, 2])
def test_tasks_of_a_family_run_beside_each_other_as_they_do_alone(tmp_path: Path, forks: int | None) -> None:
    tasks, factories = [0, 2, 1, 2, 0], [partial(rotated_digits, number) for number in range(3)]
    local = reports(Local(factories), tmp_path / "local", tasks)
    streams = reports(Streams(factories, make_stream=HostWorkStream, forks=forks), tmp_path / "streams", tasks)
    alone = reports(Local(partial(rotated_digits, 1)), tmp_path / "alone", [0])
    assert [report.failure for report in (*local, *streams)] == [None] * 20
    for a, b in zip(local, streams, strict=True):
        assert (a.fork, a.steps) == (b.fork, b.steps)
        np.testing.assert_allclose(a.values["averaged"], b.values["averaged"], rtol=1e-3)
    assert [report.values for report in local if report.fork == 12] == [report.values for report in alone]
    assert local[0].values == local[4].values
    assert local[0].values != local[1].values
