"""Forks of a Trainer: the same weights as `Trainer.train`, cut off and continued."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from transformers import Trainer

import paceline
from paceline.errors import TrainingError
from paceline.integrations import lambda_lr
from paceline.integrations.transformers import trainer_training
from paceline.testing import check_training
from paceline.training import load_checkpoint
from tests.integrations.overfitting import few, held_out, held_out_loss
from tests.integrations.trainer_models import (
    SCHEDULE,
    Counting,
    Labelled,
    Net,
    Overfitting,
    Points,
    arguments,
    flat,
    language_model,
)
from tests.training.resuming import resumed


def accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(prediction.predictions.argmax(1) == prediction.label_ids))}


def make(folder: Path, *, evaluate: bool = True, monitor: str = "eval_loss", **settings: Any) -> Any:
    def trainer() -> Trainer:
        torch.manual_seed(0)
        held_out = {"eval_dataset": Points(), "compute_metrics": accuracy} if evaluate else {}
        return Trainer(Net(), arguments(folder, **settings), train_dataset=Points(), **held_out)

    return trainer_training(trainer, monitor=monitor, every=5)()


def run(training: Any, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


@pytest.mark.parametrize("pause", [4, 17])
@pytest.mark.parametrize("settings", [{}, {"gradient_accumulation_steps": 3, "max_grad_norm": 0.1}])
def test_resumed_from_a_checkpoint_a_fork_continues_bit_for_bit(tmp_path: Path, settings: Any, pause: int) -> None:
    whole, _, second, expected = resumed(lambda: make(tmp_path, **settings), SCHEDULE, tmp_path, pause)
    assert torch.equal(flat(second.model), flat(whole.model))
    clone = make(tmp_path, **settings)
    clone.load_state_dict(load_checkpoint(tmp_path / "state.pt"))
    clone.reseed(8)
    assert run(clone, 40)[-1] != expected[-1]


@pytest.mark.parametrize("settings", [{}, {"gradient_accumulation_steps": 3, "max_grad_norm": 0.1}])
def test_it_conforms_to_what_a_training_must_do(tmp_path: Path, settings: Any) -> None:
    check_training(lambda: make(tmp_path, **settings), steps=24)


@pytest.mark.parametrize("settings", [{}, {"gradient_accumulation_steps": 2, "max_grad_norm": 0.05}, {"bf16": True}])
def test_a_fork_ends_with_the_weights_that_train_would_have_made(tmp_path: Path, settings: Any) -> None:
    args = arguments(tmp_path, train_sampling_strategy="sequential", **settings)
    trainer = Trainer(language_model(), args, train_dataset=Counting())
    optimizer = trainer.create_optimizer()
    trainer.lr_scheduler = lambda_lr(optimizer, SCHEDULE)
    trainer.pop_callback(transformers.PrinterCallback)
    trainer.train()
    fork = trainer_training(lambda: Trainer(language_model(), args, train_dataset=Counting()))()
    run(fork, 40)
    assert torch.equal(flat(fork.model), flat(trainer.model))


def test_forks_are_judged_by_what_evaluate_gives(tmp_path: Path) -> None:
    training = make(tmp_path)
    step, value = run(training, 5)[-1]
    points = Points()
    training.model.eval()
    with torch.no_grad():
        expected = float(nn.functional.cross_entropy(training.model.net(points.x), points.y))
    assert (step, value["raw"]) == (5, pytest.approx(expected, rel=1e-5))
    assert value["averaged"] != value["raw"]
    values = [v["raw"] * 40 for _, v in run(make(tmp_path, monitor="eval_accuracy"), 10)]
    assert values == pytest.approx(np.round(values))
    with pytest.raises(TrainingError, match="monitor='f1' is not what evaluate gives: it gives eval_loss"):
        run(make(tmp_path, monitor="f1"), 5)
    assert [set(v) for _, v in run(make(tmp_path, evaluate=False), 10)] == [{"raw", "averaged"}] * 3


@pytest.mark.parametrize("cost", [1.0, 2.3])
def test_forks_keep_their_best_weights(tmp_path: Path, cost: float) -> None:
    def trainer() -> Trainer:
        args = arguments(tmp_path, per_device_eval_batch_size=64)
        return Trainer(Overfitting(), args, train_dataset=Labelled(few()), eval_dataset=Labelled(held_out()))

    make_training = trainer_training(trainer, every=5)
    result = paceline.tune(make_training, steps=200, lr=(1e-4, 1e-1), cost=cost, keep="best", early_stop=False)
    assert result.value is not None
    assert 0 < result.step < result.schedule.steps
    assert result.value < 0.9 * result.last
    best = trainer()
    best.model.load_state_dict(result.weights())
    assert held_out_loss(best.model.net) == pytest.approx(result.value, rel=1e-6)
    assert best.evaluate()["eval_loss"] == pytest.approx(result.value, rel=1e-6)


def test_tuned_in_a_study_without_a_word_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def trainer() -> Trainer:
        return Trainer(Net(), arguments("asked", disable_tqdm=False), train_dataset=Points(), eval_dataset=Points())

    kept = (torch.get_rng_state().tolist(), random.getstate())
    run(trainer_training(trainer)(), 8)
    assert kept == (torch.get_rng_state().tolist(), random.getstate())
    result = paceline.tune(trainer_training(trainer, every=4), steps=80, lr=(1e-4, 1e-1))
    Net().load_state_dict(result.weights())
    assert result.value < 0.3
    assert [path.name for path in tmp_path.iterdir()] == ["asked"]
    assert list((tmp_path / "asked").iterdir()) == []
    assert capfd.readouterr() == ("", "")
