"""The callback against the real package: the rates of `PaceLR` by hand, cut off and continued."""

import gc
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from transformers import Trainer, TrainerCallback

from paceline import InputError, PaceLR
from paceline.errors import TrainingError
from paceline.integrations.transformers import PaceCallback
from tests.integrations.trainer_models import Counting, arguments, flat, language_model


class RecordedRates(TrainerCallback):
    """Rates of the updates, and of the logs."""

    def __init__(self) -> None:
        self.rates, self.logged = list[float](), list[float]()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.rates.append(kwargs["optimizer"].param_groups[0]["lr"])

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "learning_rate" in logs:
            self.logged.append(logs["learning_rate"])


@pytest.mark.parametrize(("accumulate", "clip"), [(1, 0.0), (2, 0.05)])
def test_the_callback_is_pacelr_by_hand(tmp_path: Path, accumulate: int, clip: float) -> None:
    """With all schedulers of the trainer overruled, in its logs too."""
    recorded = RecordedRates()
    settings = {"gradient_accumulation_steps": accumulate, "max_grad_norm": clip, "warmup_steps": 5}
    args = arguments(tmp_path, max_steps=60, **settings, logging_strategy="steps", logging_steps=1)
    pace = PaceCallback(lr=(1e-4, 0.1))
    trainer = Trainer(language_model(), args, train_dataset=Counting(), callbacks=[recorded, pace])
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
    assert recorded.rates == pytest.approx(rates, rel=1e-3)
    assert recorded.logged == pytest.approx(recorded.rates)
    torch.testing.assert_close(flat(trainer.model), flat(model), rtol=1e-3, atol=1e-4)
    assert not trainer.model._forward_hooks


def passes(trainer: Trainer, epoch: int, accumulate: int) -> list[list[Any]]:
    loader = trainer.get_train_dataloader()
    loader.set_epoch(epoch)
    batches = list(loader)
    return [batches[i : i + accumulate] for i in range(0, len(batches), accumulate)]


def test_a_run_resumed_from_a_checkpoint_of_the_trainer_follows_the_same_schedule(tmp_path: Path) -> None:
    def run(resume: bool, **settings: Any) -> tuple[RecordedRates, Trainer]:
        recorded = RecordedRates()
        args = arguments(tmp_path / "run", max_steps=60, **settings)
        callbacks = [recorded, PaceCallback(lr=(1e-4, 0.1))]
        trainer = Trainer(language_model(0.1), args, train_dataset=Counting(), callbacks=callbacks)
        trainer.pop_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=resume or None)
        return recorded, trainer

    whole, expected = run(False, save_strategy="steps", save_steps=25)
    for later in ("checkpoint-50", "checkpoint-60"):
        (tmp_path / "run" / later).rename(tmp_path / later)
    second, resumed = run(True)
    assert second.rates == whole.rates[25:]
    assert torch.equal(flat(resumed.model), flat(expected.model))
    (tmp_path / "run" / "checkpoint-25" / "paceline.pt").unlink()
    with pytest.raises(InputError, match=r"resumes at step 25, and there is no paceline.pt in .*checkpoint-25"):
        run(True)


class OwnRate(TrainerCallback):
    """Sets a rate of its own before each update."""

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        kwargs["optimizer"].param_groups[0]["lr"] = 0.5


class Stop(TrainerCallback):
    """Ends a run as EarlyStoppingCallback does."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop = state.global_step == 25


def ended(tmp_path: Path, pace: PaceCallback, *others: TrainerCallback, **settings: Any) -> list[str]:
    """What is said when a run of 30 steps is over and its PaceLR gone."""
    args = arguments(tmp_path, max_steps=30, **settings)
    trainer = Trainer(language_model(), args, train_dataset=Counting(), callbacks=[*others, pace])
    trainer.pop_callback(transformers.PrinterCallback)
    trainer.train()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pace.pace = None
        gc.collect()
    return [str(w.message) for w in caught if "a run with PaceLR" in str(w.message)]


def test_a_rate_that_a_callback_sets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"rate of parameter group 0 at step 1 is 0.5, but PaceLR had set 0.0001"):
        ended(tmp_path, PaceCallback((1e-4, 0.1)), OwnRate())


def test_a_trainer_that_makes_fewer_steps_is_told_about(tmp_path: Path) -> None:
    (message,) = ended(tmp_path, PaceCallback((1e-4, 0.1), steps=100))
    assert "ended at step 30 of 100, at" in message
    assert not ended(tmp_path, PaceCallback((1e-4, 0.1), steps=100), save_strategy="steps", save_steps=30)
    assert not ended(tmp_path, PaceCallback((1e-4, 0.1), steps=100), Stop())
    assert not ended(tmp_path, PaceCallback((1e-4, 0.1)))
    with pytest.warns(UserWarning, match="constructed for 20 steps, and they are over"):
        ended(tmp_path, PaceCallback((1e-4, 0.1), steps=20))


def test_the_callback_says_what_it_cannot_work_with(tmp_path: Path) -> None:
    def train(callback: PaceCallback, kind: type = Trainer, **settings: Any) -> Any:
        args = arguments(tmp_path, **settings)
        data = {"train_dataset": Counting(), "eval_dataset": Counting()}
        kind(language_model(), args, **data, callbacks=[callback]).train()

    with pytest.raises(InputError, match="the model's output has no loss"):
        train(PaceCallback((1e-4, 0.1)), label_smoothing_factor=0.1)
    with pytest.raises(InputError, match="must not be reduce_lr_on_plateau"):
        train(PaceCallback((1e-4, 0.1)), lr_scheduler_type="reduce_lr_on_plateau", eval_strategy="epoch")
    optimizer = torch.optim.AdamW(language_model().parameters())
    both = (optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0))
    with pytest.raises(InputError, match=r"was given a scheduler \(LambdaLR\), .* pass optimizers=\(optimizer, None\)"):
        Trainer(language_model(), arguments(tmp_path), optimizers=both, callbacks=[PaceCallback((1e-4, 0.1))])
    noting = PaceCallback((1e-4, 0.1))

    class Own(Trainer):
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().compute_loss(*args, **kwargs)
            noting.note(loss)
            return loss

    train(noting, Own, label_smoothing_factor=0.1, max_steps=20)
    assert noting.pace is not None
    assert noting.pace.last_epoch == 20
