"""Runners hold the trainings of several tasks: a run begins from its own task's start and sees its own task's data."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.runner import Local, Report, Runner, Task
from paceline.runner import Streams
from paceline.training import TorchTraining
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

STEPS = 40


def task(number: int) -> TorchTraining:
    """Digits with their labels turned by a number: a family whose members cannot be mistaken for each other."""
    training = device_digits(evaluate="none")
    batches = training.batches.source
    batches.tensors = (batches.tensors[0], (batches.tensors[1] + number) % 10)
    with torch.no_grad():
        training.model[4].bias += number
    return training


def reports(runner: Runner, folder: Path, tasks: list[int]) -> list[Report]:
    """One run each, in two intervals."""
    schedule, found = Schedule.of("linear", 1e-2, STEPS), list[Report]()
    for number in sorted(set(tasks)):
        runner.prepare(folder / f"{number}-0.pt", number)
    for start, stop in ((0, STEPS // 2), (STEPS // 2, STEPS)):
        asked = [
            Task(
                fork,
                folder / (f"{fork + 10}-{start}.pt" if start else f"{number}-0.pt"),
                folder / f"{fork + 10}-{stop}.pt",
                stop,
                schedule,
                None,
                start,
                number,
            )
            for fork, number in enumerate(tasks)
        ]
        found += sorted(runner.run(asked), key=lambda report: report.fork)
    runner.close()
    return found


@pytest.mark.parametrize("forks", [None, 1, 2])
def test_tasks_of_a_family_run_beside_each_other_as_they_do_alone(tmp_path: Path, forks: int | None) -> None:
    tasks, makers = [0, 2, 1, 2, 0], [partial(task, number) for number in range(3)]
    turn = reports(Local(makers), tmp_path / "turn", tasks)
    side = reports(Streams(makers, make_stream=HostWorkStream, forks=forks), tmp_path / "side", tasks)
    alone = reports(Local(partial(task, 1)), tmp_path / "alone", [0])
    assert [r.failure for r in (*turn, *side)] == [""] * 20
    for a, b in zip(turn, side, strict=True):
        assert (a.fork, a.steps) == (b.fork, b.steps)
        np.testing.assert_allclose(a.values["averaged"], b.values["averaged"], rtol=1e-3)
    assert [r.values for r in turn if r.fork == 2] == [r.values for r in alone]
    assert turn[0].values == turn[4].values
    assert turn[0].values != turn[1].values
