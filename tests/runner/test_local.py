from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Local
from paceline.study import Checkpoints, Failure, Interval
from paceline.traces import Schedule
from paceline.training import load_checkpoint

SCHEDULE = Schedule.constant(0.1, 100)
FIRST = Interval(0, None, 0, 20, SCHEDULE, 1)
MAKE = partial(QuadraticTraining, Quadratic(dims=5))


def ready(folder: Path, make=MAKE) -> Local:
    runner = Local(make)
    runner.attach(Checkpoints(folder), 7)
    runner.prepare()
    return runner


def test_an_interval_leaves_its_state_and_a_report(tmp_path: Path) -> None:
    runner, seen = ready(tmp_path), []
    runner.on_step = lambda fork, step: seen.append((fork, step))
    (report,) = runner.run([FIRST])
    alone = QuadraticTraining(Quadratic(dims=5))
    observed = dict(alone.advance(SCHEDULE, 20))
    assert report.steps == tuple(observed)
    assert report.values["raw"] == tuple(values["raw"] for values in observed.values())
    assert seen == [(0, step) for step in observed]
    assert np.array_equal(load_checkpoint(tmp_path / "0-20.pt")["model"]["theta"].numpy(), alone.theta)
    assert runner.stopwatch.seconds["training"] > 0


def test_a_clone_begins_with_its_parents_state_and_draws_other_noise(tmp_path: Path) -> None:
    runner = ready(tmp_path)
    list(runner.run([FIRST]))
    on, clone = runner.run([Interval(0, None, 20, 40, SCHEDULE, 2), Interval(1, 0, 20, 40, SCHEDULE, 2)])
    assert on.values["raw"] != clone.values["raw"]
    assert load_checkpoint(tmp_path / "1-40.pt")["seed"] == runner.clone_seed(Interval(1, 0, 20, 40, SCHEDULE, 2))


def test_a_fork_that_raises_is_a_failure_and_the_next_one_runs(tmp_path: Path) -> None:
    class Raises(QuadraticTraining):
        def advance(self, schedule: Schedule, stop: int) -> Iterator:
            for step, value in super().advance(schedule, stop):
                yield step, value
                if schedule(0) > 1.0:
                    raise ValueError("too hot")

    runner = ready(tmp_path, partial(Raises, Quadratic(dims=5)))
    hot = Interval(1, None, 0, 20, Schedule.constant(1.5, 100), 1)
    failed, fine = runner.run([hot, FIRST])
    assert isinstance(failed.failure, Failure)
    assert (failed.failure.kind, failed.failure.message) == ("raised", "ValueError: too hot")
    assert failed.failure.place.startswith("test_local.py, line ")
    assert isinstance(failed.failure.error, ValueError)
    assert failed.stop == failed.steps[-1] == 10
    assert not (tmp_path / "1-20.pt").exists()
    assert fine.failure is None


def test_a_training_that_yields_nothing_is_a_failure(tmp_path: Path) -> None:
    class Silent(QuadraticTraining):
        def advance(self, schedule: Schedule, stop: int) -> Iterator:
            return iter(())

    (report,) = ready(tmp_path, partial(Silent, Quadratic(dims=5))).run([FIRST])
    assert report.failure is not None
    assert "yielded nothing up to step 20" in report.failure.message


def test_the_tasks_of_a_family_have_a_training_each(tmp_path: Path) -> None:
    runner = Local([partial(QuadraticTraining, Quadratic(dims=dims)) for dims in (5, 8)])
    runner.attach(Checkpoints(tmp_path), 0)
    runner.prepare(0)
    runner.prepare(1)
    reports = list(runner.run([FIRST, Interval(1, None, 0, 20, SCHEDULE, 1, task=1)]))
    assert [report.fork for report in reports] == [0, 1]
    sizes = [len(load_checkpoint(tmp_path / name)["model"]["theta"]) for name in ("0-20.pt", "1-20.pt")]
    assert sizes == [5, 8]


def test_a_state_of_another_training_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    runner = ready(tmp_path)
    runner.training.load_state_dict = lambda state: model.load_state_dict({"weight": torch.zeros(3, 3)})  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match=r"0-0\.pt does not fit the training .*build the training that the study"):
        list(runner.run([FIRST]))
