"""Forks in lockstep: each trains to its next observation, and a fork that fails leaves the others alone."""

import numpy as np
import pytest
import torch

from paceline.errors import InputError, TrainingError
from paceline.runner.best_of_interval import BestOfInterval
from paceline.runner.streams.lockstep import RunningFork, gpu_errors, observe, replay_to_observation
from paceline.study import Interval, KeepRule
from paceline.traces import Schedule
from paceline.training import RecordedTraining
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

SCHEDULE = Schedule.constant(1e-2, 60)


def running(fork: int, stop: int, *, every: int = 10, evaluate=None, rule: KeepRule | None = None) -> RunningFork:
    """A fork whose evaluation is `evaluate(weights are those of a started run)` if given."""
    training = device_digits(every=every)
    recorded = RecordedTraining(training, HostWorkStream(torch.device("cpu")))
    if evaluate is not None:
        training.evaluate = evaluate
    interval = Interval(fork, None, 0, stop, SCHEDULE, 1)
    recorded.begin(SCHEDULE)
    return RunningFork(interval, recorded, BestOfInterval(interval, rule))


def test_forks_train_to_observations_of_their_own() -> None:
    forks = [running(0, 20), running(1, 25), running(2, 14, every=4)]
    observe([fork for fork in forks if fork.observes_start])
    assert not any(fork.steps_done for fork in forks)
    while active := [fork for fork in forks if fork.steps_to_observation]:
        replay_to_observation(active)
        observe(active)
    reports = [fork.report() for fork in forks]
    assert [report.steps for report in reports] == [(0, 10, 20), (0, 10, 20, 25), (0, 4, 8, 12, 14)]
    assert [report.stop for report in reports] == [20, 25, 14]
    alone = dict(device_digits().advance(SCHEDULE, 20))
    assert reports[0].values["raw"] == pytest.approx([alone[step]["raw"] for step in (0, 10, 20)], rel=2e-3)


def test_an_interval_of_zero_steps_has_nothing_to_do() -> None:
    assert running(0, 0).steps_to_observation == 0


def raises(error: Exception):
    def evaluate(model) -> float:
        raise error

    return evaluate


@pytest.mark.parametrize(
    ("evaluate", "kind", "message"),
    [
        (raises(ValueError("no such file")), "raised", "ValueError: no such file"),
        (lambda model: float("nan"), "not finite", ""),
    ],
)
def test_an_evaluation_that_goes_wrong_fails_its_fork_only(evaluate, kind: str, message: str) -> None:
    broken, other = running(0, 20, evaluate=evaluate), running(1, 20)
    observe([broken, other])
    assert broken.failure is not None
    assert broken.failure.kind == kind
    assert broken.failure.message == message
    assert broken.steps_to_observation == 0
    assert broken.report().failure is broken.failure
    assert other.failure is None
    assert other.steps_to_observation == 10


def test_an_evaluation_that_runs_out_of_memory_fails_its_fork_and_says_what_to_do() -> None:
    broken = running(3, 20, evaluate=raises(torch.OutOfMemoryError("CUDA out of memory")))
    with pytest.warns(UserWarning, match="fork 3 ran out of GPU memory while it was evaluated: ask for fewer forks"):
        observe([broken])
    assert broken.failure is not None
    assert broken.failure.kind == "out of memory"
    assert "CUDA out of memory" in broken.failure.message


def test_a_mistake_in_evaluate_stops_the_study() -> None:
    with pytest.raises(InputError, match="must return one number"):
        observe([running(0, 20, evaluate=lambda model: np.ones(3))])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "memory ran out after the steps were recorded: ask for fewer"),
        (RuntimeError("CUDA error: device-side assert\nmore"), r"stopped while .* \(RuntimeError: CUDA error: device-"),
    ],
)
def test_an_error_of_the_gpu_stops_the_study_with_advice(error: Exception, message: str) -> None:
    with pytest.raises(TrainingError, match=message), gpu_errors():
        raise error
    if "CUDA error" in str(error):
        with pytest.raises(TrainingError, match=message):
            observe([running(0, 20, evaluate=raises(error))])
