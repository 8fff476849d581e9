"""The best observation of an interval: which state is kept, and that a report never names one that is not."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Local
from paceline.runner.best_of_interval import BestOfInterval, is_evaluating
from paceline.study import Checkpoints, Failure, Interval, KeepRule
from paceline.traces import Schedule
from paceline.training import load_checkpoint
from tests.training.example_trainings import device_digits

INTERVAL = Interval(3, None, 0, 40, Schedule.constant(0.1, 100), 1)
FAILURE = Failure("raised", "bad")


def state_at(step: int) -> dict:
    return {"done": step, "weight": torch.tensor([float(step)])}


def offered(values: dict[int, float], rule: KeepRule | None) -> BestOfInterval:
    best = BestOfInterval(INTERVAL, rule)
    for step, value in values.items():
        best.offer(step, {"raw": value}, partial(state_at, step))
    return best


def kept_files(best: BestOfInterval, failure: Failure | None, folder: Path) -> dict[str, int]:
    best.save(Checkpoints(folder), failure)
    return {path.name: load_checkpoint(path)["done"] for path in folder.glob("*")}


@pytest.mark.parametrize(
    ("values", "to_beat", "failure", "step"),
    [
        ({10: 3.0, 20: 1.0, 30: 2.0, 40: 1.5}, None, None, 20),
        ({10: 3.0, 20: 1.0, 30: 2.0, 40: 1.5}, 1.0, None, None),  # as good as before is not better
        ({10: 3.0, 20: 1.0, 30: 2.0}, None, FAILURE, 20),  # a fork that fails keeps its best moment
        ({10: 3.0, 20: 1.0, 30: 2.0, 40: 0.5}, None, FAILURE, 20),  # the end could not be saved
        ({40: 0.5}, None, FAILURE, None),
        ({}, None, FAILURE, None),
    ],
)
def test_the_state_of_the_best_observation_is_kept(values, to_beat, failure, step, tmp_path: Path) -> None:
    best = offered(values, KeepRule(-1.0, to_beat))
    assert best.step_after(failure) == step
    assert kept_files(best, failure, tmp_path) == ({f"3-{step}.pt": step} if step else {})


@pytest.mark.parametrize(("values", "step"), [({0: 1.0, 10: 2.0, 40: 3.0}, 0), ({0: 3.0, 10: 2.0, 40: 1.0}, 40)])
def test_the_states_of_both_ends_are_not_written_twice(values, step: int, tmp_path: Path) -> None:
    best = offered(values, KeepRule(-1.0))
    assert best.step_after(None) == step
    assert kept_files(best, None, tmp_path) == {}


def test_bigger_values_and_averaged_weights_can_be_the_best() -> None:
    best = BestOfInterval(INTERVAL, KeepRule(1.0))
    best.offer(10, {"raw": 0.3, "averaged": 0.5}, partial(state_at, 10))
    best.offer(20, {"raw": 0.4, "averaged": 0.2}, partial(state_at, 20))
    assert best.step_after(None) == 10


def test_without_a_rule_nothing_is_copied() -> None:
    assert offered({10: 1.0}, None).step_after(None) is None


def test_a_state_that_cannot_be_copied_is_not_reported_as_kept(tmp_path: Path) -> None:
    def fails() -> dict:
        raise RuntimeError("no state now")

    best = offered({10: 3.0}, KeepRule(-1.0))
    with pytest.raises(RuntimeError, match="no state now"):
        best.offer(20, {"raw": 1.0}, fails)
    assert best.step_after(FAILURE) is None
    assert kept_files(best, FAILURE, tmp_path) == {}


class NoEnd(QuadraticTraining):
    """A training whose state cannot be had at step 40."""

    def state_dict(self) -> dict:
        if self.steps_done == 40:
            raise ValueError("the file is gone")
        return super().state_dict()


def test_a_fork_that_fails_at_its_end_keeps_its_best_moment_before(tmp_path: Path) -> None:
    runner = Local(partial(NoEnd, Quadratic(dims=5)))
    runner.attach(Checkpoints(tmp_path), 0)
    runner.keep_rule = lambda interval: KeepRule(-1.0)
    runner._is_checked = True
    runner.prepare()
    (report,) = runner.run([INTERVAL])
    assert report.failure is not None
    assert report.failure.message == "ValueError: the file is gone"
    assert report.kept == 30
    alone = QuadraticTraining(Quadratic(dims=5))
    list(alone.advance(INTERVAL.schedule, 30))
    assert np.array_equal(load_checkpoint(tmp_path / "3-30.pt")["model"]["theta"].numpy(), alone.theta)


def test_a_training_says_whether_it_evaluates() -> None:
    assert is_evaluating(device_digits(evaluate="number"))
    assert not is_evaluating(device_digits(evaluate="none"))
    assert not is_evaluating(QuadraticTraining(Quadratic(dims=5)))
