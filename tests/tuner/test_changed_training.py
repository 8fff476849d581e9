"""A study that is called again says what has changed since it began."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from paceline.errors import TrainingError
from paceline.study import Event, Report, read_training_record
from paceline.training import TorchTraining
from paceline.tuner import tune, tune_tasks
from tests.tuner.toy_study import Interrupt

SETTINGS: Any = {"steps": 60, "lr": (1e-3, 1e-1), "cost": 1.5, "quiet": True}
ROWS = torch.linspace(-1, 1, 64).reshape(16, 4)


def training(model: nn.Module | None = None, **settings: float) -> TorchTraining:
    torch.manual_seed(0)
    model = nn.Linear(4, 1) if model is None else model

    def loss(net: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return (net(batch) - 1).square().mean()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **settings)
    return TorchTraining(model, optimizer, batches=[ROWS], loss=loss, evaluate=lambda net: loss(net, ROWS))


def test_a_finished_study_called_again_says_what_has_changed_and_runs_nothing(tmp_path: Path) -> None:
    whole = tune(training, study=tmp_path, **SETTINGS)
    again = tune(training, study=tmp_path, **SETTINGS)
    with pytest.warns(UserWarning, match=r"momentum was 0, and is 0\.9.* it is finished, so nothing was run"):
        changed = tune(partial(training, momentum=0.9), study=tmp_path, **SETTINGS)
    assert whole.value == again.value == changed.value


def test_a_study_that_goes_on_says_what_has_changed(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, Report):
            raise Interrupt

    with pytest.raises(Interrupt):
        tune(training, study=tmp_path, on_event=stop, **SETTINGS)
    going_on = r"weight_decay was 0, and is 0\.5.* it goes on, and the settings of its optimiser come back"
    for _ in range(2):
        with pytest.warns(UserWarning, match=going_on), pytest.raises(Interrupt):
            tune(partial(training, weight_decay=0.5), study=tmp_path, on_event=stop, **SETTINGS)


def test_until_something_is_reported_the_code_may_be_corrected(tmp_path: Path) -> None:
    def mistaken() -> TorchTraining:
        made = training()
        made.loss = lambda net, batch: 1 / 0
        return made

    with pytest.raises(ZeroDivisionError):
        tune(mistaken, study=tmp_path, **SETTINGS)
    tune(partial(training, momentum=0.9), study=tmp_path, **SETTINGS)
    tune(partial(training, momentum=0.9), study=tmp_path, **SETTINGS)


def test_an_older_study_has_no_record_and_gets_one_when_it_goes_on(tmp_path: Path) -> None:
    def stop(event: object) -> None:
        raise Interrupt

    with pytest.raises(Interrupt):
        tune(training, study=tmp_path, on_event=stop, **SETTINGS)
    assert not read_training_record(tmp_path)
    tune(training, study=tmp_path, **SETTINGS)
    assert read_training_record(tmp_path)[""]["training"]["optimiser"] == "SGD"


def test_a_model_that_all_tasks_share_is_refused(tmp_path: Path) -> None:
    shared = nn.Linear(4, 1)
    tasks = {"a": partial(training, shared), "b": partial(training, shared)}
    with pytest.raises(
        TrainingError, match="task 'b': the training factory returned the same model at two calls: build"
    ):
        tune_tasks(tasks, steps=60, lr=(1e-3, 1e-1), intervals=2, budget=3, study=tmp_path, quiet=True)


def test_a_second_study_does_not_begin_with_the_weights_that_the_first_one_left() -> None:
    shared = nn.Linear(4, 1)
    tune(partial(training, shared), **SETTINGS)
    with pytest.raises(TrainingError, match="as an earlier study of this process has left it, trained"):
        tune(partial(training, shared), **SETTINGS)


def test_a_training_that_was_trained_by_hand_is_refused() -> None:
    used = training()
    first = tune(lambda: used, **SETTINGS)
    assert first.value is not None
    with pytest.raises(TrainingError, match=r"has done \d+ steps already"):
        tune(lambda: used, **SETTINGS)
