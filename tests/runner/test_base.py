import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Local
from paceline.runner.base import ObservationBuffer, by_task
from paceline.study import Checkpoints, Failure, Interval
from paceline.traces import Schedule

SCHEDULE = Schedule.constant(0.1, 100)
INTERVAL = Interval(3, None, 10, 20, SCHEDULE, 2)
CLONE = Interval(4, 3, 10, 20, SCHEDULE, 2)


def local(folder: Path, seed: int = 0) -> Local:
    runner = Local(partial(QuadraticTraining, Quadratic(dims=5)))
    runner.attach(Checkpoints(folder), seed)
    return runner


def test_observations_become_a_report() -> None:
    buffer = ObservationBuffer(INTERVAL)
    assert buffer.add(15, {"raw": 2.0, "averaged": np.float32(1.5)}) is None
    assert buffer.add(20, {"raw": 1.0, "averaged": 1.25}) is None
    report = buffer.report()
    assert (report.fork, report.start, report.stop, report.failure) == (3, 10, 20, None)
    assert report.steps == (15, 20)
    assert report.values == {"raw": (2.0, 1.0), "averaged": (1.5, 1.25)}


@pytest.mark.parametrize(("value", "kind"), [(math.nan, "not finite"), (math.inf, "not finite"), (1e101, "diverged")])
def test_a_value_that_cannot_be_learnt_from_is_a_failure(value: float, kind: str) -> None:
    buffer = ObservationBuffer(INTERVAL)
    buffer.add(12, 1.0)
    failure = buffer.add(14, value)
    assert failure == Failure(kind, step=14)
    report = buffer.report(failure)
    assert (report.stop, report.failure) == (14, failure)


def test_a_failure_before_the_first_observation_ends_where_the_interval_begins() -> None:
    assert ObservationBuffer(INTERVAL).report(Failure("raised", "bad")).stop == 10


def test_one_factory_is_that_of_the_first_task() -> None:
    def make() -> QuadraticTraining:
        return QuadraticTraining(Quadratic(dims=5))

    assert by_task(make) == (make,)
    assert by_task([make, make]) == (make, make)


def test_only_clones_get_a_seed_and_each_its_own(tmp_path: Path) -> None:
    runner = local(tmp_path)
    seeds = {runner.clone_seed(Interval(fork, 3, step, 40, SCHEDULE, 2)) for fork in (4, 5) for step in (10, 20)}
    assert len(seeds) == 4
    assert runner.clone_seed(INTERVAL) is None
    assert runner.clone_seed(CLONE) == local(tmp_path).clone_seed(CLONE)
    assert runner.clone_seed(CLONE) != local(tmp_path, seed=1).clone_seed(CLONE)


def test_checkpoints_that_are_not_needed_are_deleted_and_torn_ones_too(tmp_path: Path) -> None:
    for name in ("0-10.pt", "1-10.pt", "1-20.pt.tmp", "0-20.pt.tmp"):
        (tmp_path / name).touch()
    local(tmp_path).keep_only({tmp_path / "0-10.pt", tmp_path / "0-20.pt"})
    assert {path.name for path in tmp_path.iterdir()} == {"0-10.pt", "0-20.pt.tmp"}


def test_files_that_the_journal_does_not_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "0-30.pt").touch()
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    mine = {"best.ckpt", "best.ckpt.tmp", "9-10.pt", "0-15.pt", "00-10.pt", "0-10.pt.bak", "notes.pt"}
    for name in {*mine, "0-10.pt", "0-20.pt", "0-10.pt.12ab.tmp"}:
        (folder / name).touch()
    (folder / "1-20.pt").mkdir()
    (folder / "0-30.pt").symlink_to(tmp_path / "elsewhere" / "0-30.pt")
    runner = local(folder)
    runner.is_named = lambda fork, step: fork < 2 and step in (10, 20, 30)
    runner.keep_only({folder / "0-20.pt"})
    assert {path.name for path in folder.iterdir()} == {*mine, "0-20.pt", "1-20.pt", "0-30.pt"}
    runner.discard({folder / "0-30.pt"})
    assert (tmp_path / "elsewhere" / "0-30.pt").exists()


def test_nothing_is_deleted_in_a_folder_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "0-10.pt").touch()
    (tmp_path / "checkpoints").symlink_to(tmp_path / "elsewhere")
    runner = local(tmp_path / "checkpoints")
    runner.keep_only(set())
    runner.discard({tmp_path / "checkpoints" / "0-10.pt"})
    assert (tmp_path / "elsewhere" / "0-10.pt").exists()


def test_single_checkpoints_are_deleted_while_others_may_be_written(tmp_path: Path) -> None:
    for name in ("0-10.pt", "1-10.pt", "1-15.pt", "1-20.pt.tmp"):
        (tmp_path / name).touch()
    local(tmp_path).discard({tmp_path / "0-10.pt", tmp_path / "2-10.pt"})
    assert {path.name for path in tmp_path.iterdir()} == {"1-10.pt", "1-15.pt", "1-20.pt.tmp"}
