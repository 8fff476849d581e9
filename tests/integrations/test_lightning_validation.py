"""Forks are compared by what the module logs in its own validation."""

from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import numpy as np
import pytest
import torch
from torch import nn

import paceline
from paceline.errors import TrainingError
from paceline.integrations.lightning import lightning_training
from paceline.integrations.lightning_setup import BatchTransfer, connect_module, idle_trainer
from paceline.integrations.lightning_validation import Validation
from tests.integrations.lightning_modules import (
    QUIET,
    SCHEDULE,
    Data,
    Net,
    Overfitting,
    examples,
    few_and_held_out,
    in_order,
)
from tests.integrations.overfitting import held_out_loss

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # a warning of torch in Trainer.fit
]


def make(**settings: Any) -> Any:
    return lightning_training(Net, Data, accelerator="cpu", every=5, **settings)()


def run(training: Any, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


def test_forks_are_judged_by_what_the_module_logs() -> None:
    loss, accuracy = make(), make(monitor="acc", limit_val_batches=2)
    step, value = run(loss, 5)[-1]
    x, y = examples()[:]
    loss.module.eval()
    with torch.no_grad():
        expected = float(nn.functional.cross_entropy(loss.module.net(x), y))
    assert (step, value["raw"]) == (5, pytest.approx(expected, rel=1e-5))
    assert value["averaged"] != value["raw"]
    values = [v["raw"] * 32 for _, v in run(accuracy, 10)]
    assert values == pytest.approx(np.round(values))
    with pytest.raises(TrainingError, match="validation gave no f1, it logged acc, val_loss"):
        run(make(monitor="f1"), 5)
    without = lightning_training(Net, in_order, accelerator="cpu", every=5)()
    assert [set(v) for _, v in run(without, 10)] == [{"raw", "averaged"}] * 3


@pytest.mark.parametrize("cost", [1.0, 2.3])
def test_forks_keep_their_best_weights(cost: float) -> None:
    make_training = lightning_training(Overfitting, few_and_held_out, monitor="val_loss", accelerator="cpu", every=5)
    result = paceline.tune(make_training, steps=200, lr=(1e-4, 1e-1), cost=cost, keep="best", early_stop=False)
    assert result.value is not None
    assert 0 < result.step < result.schedule.steps
    assert result.value < 0.9 * result.last
    module = Overfitting()
    module.load_state_dict(result.weights())
    assert held_out_loss(module.net) == pytest.approx(result.value, rel=1e-6)
    trainer = L.Trainer(**QUIET)
    (values,) = trainer.validate(module, few_and_held_out()[1], verbose=False)
    assert values["val_loss"] == pytest.approx(result.value, rel=1e-6)


def validation(monitor: str | None, **settings: Any) -> tuple[Validation, Net]:
    """The validation of a new module."""
    trainer = idle_trainer({"accelerator": "cpu", **settings})
    module, data = Net(), Data()
    connect_module(trainer, module, data)
    found = Validation(trainer, module, data.val_dataloader(), BatchTransfer(trainer, module, data), monitor)
    module.log = found.log
    return found, module


def test_means_are_weighted_by_the_sizes_of_batches() -> None:
    by_loss, module = validation("val_loss")
    x, y = examples()[:]
    module.eval()
    with torch.no_grad():
        expected = float(nn.functional.cross_entropy(module.net(x), y))
    assert by_loss.run() == pytest.approx(expected, rel=1e-5)  # batches of 16, 16, 16 and 2
    assert by_loss.run() == pytest.approx(expected, rel=1e-5)  # nothing is left of the first time


def test_metrics_are_computed_over_all_batches_and_reset() -> None:
    by_accuracy, module = validation("acc")
    first = by_accuracy.run()
    assert 0 <= first <= 1
    assert by_accuracy.run() == first
    assert float(module.metric.weight) == 0


@pytest.mark.parametrize(("limit", "batches"), [(2, 2), (0.5, 2), (1.0, 4)])
def test_the_number_of_batches_can_be_limited(limit: float, batches: int) -> None:
    limited, module = validation("val_loss", limit_val_batches=limit)
    seen: list[int] = []
    module.on_validation_batch_start = lambda batch, index: seen.append(index)
    limited.run()
    assert seen == list(range(batches))


def test_what_training_logs_is_ignored() -> None:
    found, module = validation("train_loss")
    found.trainer.training = True
    module.log("train_loss", 1.0)
    with pytest.raises(TrainingError, match="validation gave no train_loss, it logged acc, val_loss"):
        found.run()
