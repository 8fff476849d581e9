"""Against the real package, models from a configuration: the same weights as Trainer.train, cut off and continued."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import paceline
from paceline import InputError, PaceLR, Schedule
from paceline.errors import TrainingError
from paceline.integrations import lambda_lr
from paceline.testing import check_training
from paceline.training import load_checkpoint
from tests.training.resuming import resumed

transformers = pytest.importorskip("transformers")
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments  # noqa: E402

from paceline.integrations.transformers import PaceCallback, trainer_training  # noqa: E402

SCHEDULE = Schedule.of("linear", 1e-2, 40)


class Counting(Dataset):
    """Sequences that go up by one, with some labels masked, so that batches hold different numbers of items."""

    def __init__(self, count: int = 42) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        tokens = (torch.arange(8) + i) % 16
        return {"input_ids": tokens, "labels": torch.where(torch.arange(8) < i % 5, -100, tokens)}


class Points(Dataset):
    def __init__(self) -> None:
        self.x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"x": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    """A model that is none of theirs, with normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 2))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.net(x)
        loss = {} if labels is None else {"loss": nn.functional.cross_entropy(logits, labels)}
        return {**loss, "logits": logits}


def language_model(dropout: float = 0.0) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=16, attention_dropout=dropout, **sizes))


def arguments(folder: Any, **settings: Any) -> TrainingArguments:
    common = {"per_device_train_batch_size": 8, "max_steps": 40, "use_cpu": True, "disable_tqdm": True}
    quiet = {"report_to": [], "save_strategy": "no", "logging_strategy": "no", "learning_rate": 1e-2}
    return TrainingArguments(str(folder), **{**common, **quiet, "dataloader_pin_memory": False, **settings})


class Heard(TrainerCallback):
    """Rates of the updates, and of the logs."""

    def __init__(self) -> None:
        self.rates, self.logged = list[float](), list[float]()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.rates.append(kwargs["optimizer"].param_groups[0]["lr"])

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "learning_rate" in logs:
            self.logged.append(logs["learning_rate"])


def flat(model: nn.Module) -> Tensor:
    return torch.cat([t.detach().double().flatten() for t in model.state_dict().values()])


@pytest.mark.parametrize(("accumulate", "clip"), [(1, 0.0), (2, 0.05)])
def test_the_callback_is_pacelr_by_hand(tmp_path: Path, accumulate: int, clip: float) -> None:
    """With all schedulers of the trainer overruled, in its logs too."""
    heard = Heard()
    settings = {"gradient_accumulation_steps": accumulate, "max_grad_norm": clip, "warmup_steps": 5}
    args = arguments(tmp_path, max_steps=60, **settings, logging_strategy="steps", logging_steps=1)
    pace = PaceCallback(lr=(1e-4, 0.1))
    trainer = Trainer(language_model(), args, train_dataset=Counting(), callbacks=[heard, pace])
    trainer.pop_callback(transformers.PrinterCallback)
    batches = [batch for epoch in range(20) for batch in passes(trainer, epoch, accumulate)][:60]
    trainer.train()
    model = language_model().train()
    optimizer = Trainer(model, args).create_optimizer()
    by_hand = PaceLR(optimizer, (1e-4, 0.1), 60, model=model)
    rates = list[float]()
    for window in batches:
        optimizer.zero_grad()
        items = sum(int((batch["labels"][:, 1:] != -100).sum()) for batch in window)
        losses = [model(**batch, num_items_in_batch=torch.tensor(items)).loss for batch in window]
        for loss in losses:
            loss.backward()
        by_hand.read_gradients()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        by_hand.step(torch.stack(losses).sum())
    assert heard.rates == pytest.approx(rates, rel=1e-3)
    assert heard.logged == pytest.approx(heard.rates)
    torch.testing.assert_close(flat(trainer.model), flat(model), rtol=1e-3, atol=1e-4)
    assert not trainer.model._forward_hooks


def passes(trainer: Trainer, epoch: int, accumulate: int) -> list[list[Any]]:
    loader = trainer.get_train_dataloader()
    loader.set_epoch(epoch)
    batches = list(loader)
    return [batches[i : i + accumulate] for i in range(0, len(batches), accumulate)]


def test_a_run_resumed_from_a_checkpoint_of_the_trainer_follows_the_same_schedule(tmp_path: Path) -> None:
    def run(resume: bool, **settings: Any) -> tuple[Heard, Trainer]:
        heard = Heard()
        args = arguments(tmp_path / "run", max_steps=60, **settings)
        callbacks = [heard, PaceCallback(lr=(1e-4, 0.1))]
        trainer = Trainer(language_model(0.1), args, train_dataset=Counting(), callbacks=callbacks)
        trainer.pop_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=resume or None)
        return heard, trainer

    whole, expected = run(False, save_strategy="steps", save_steps=25)
    for later in ("checkpoint-50", "checkpoint-60"):
        (tmp_path / "run" / later).rename(tmp_path / later)
    second, resumed = run(True)
    assert second.rates == whole.rates[25:]
    assert torch.equal(flat(resumed.model), flat(expected.model))
    (tmp_path / "run" / "checkpoint-25" / "paceline.pt").unlink()
    with pytest.raises(InputError, match=r"resumes at step 25, and there is no paceline.pt in .*checkpoint-25"):
        run(True)


def test_the_callback_says_what_it_cannot_work_with(tmp_path: Path) -> None:
    def train(callback: PaceCallback, kind: type = Trainer, **settings: Any) -> Any:
        args = arguments(tmp_path, **settings)
        data = {"train_dataset": Counting(), "eval_dataset": Counting()}
        kind(language_model(), args, **data, callbacks=[callback]).train()

    with pytest.raises(InputError, match="the model's output has no loss"):
        train(PaceCallback((1e-4, 0.1)), label_smoothing_factor=0.1)
    with pytest.raises(InputError, match="must not be reduce_lr_on_plateau"):
        train(PaceCallback((1e-4, 0.1)), lr_scheduler_type="reduce_lr_on_plateau", eval_strategy="epoch")
    noting = PaceCallback((1e-4, 0.1))

    class Own(Trainer):
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().compute_loss(*args, **kwargs)
            noting.note(loss)
            return loss

    train(noting, Own, label_smoothing_factor=0.1, max_steps=20)
    assert noting.pace is not None
    assert noting.pace.last_epoch == 20


# forks


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
    assert [set(v) for _, v in run(make(tmp_path, evaluate=False), 10)] == [{"raw", "averaged"}] * 2


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
