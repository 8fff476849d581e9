"""The callback beside the Trainer's own ways to keep the best model: it is restored at the end, and goes on."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback

from paceline.integrations.transformers import STATE_FILE, PaceCallback
from paceline.strategy.single_run.rules import range_test_steps
from tests.integrations.overfitting import few, held_out, held_out_loss
from tests.integrations.trainer_models import Labelled, Overfitting, arguments

STEPS, EVERY = 200, 5
RANGE_TEST = range_test_steps(STEPS)
BEST: dict[str, Any] = {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss", "save_total_limit": 2}


class Observed(TrainerCallback):
    """Rates of the updates, and values by step."""

    def __init__(self) -> None:
        self.rates, self.values = list[float](), dict[int, float]()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.rates.append(kwargs["optimizer"].param_groups[0]["lr"])

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        self.values.setdefault(state.global_step, metrics["eval_loss"])  # of the run, not of the restored model

    @property
    def best_step(self) -> int:
        return min(self.values, key=lambda step: self.values[step])


def train(folder: Path, *more: Any, resume: Any = None, **settings: Any) -> tuple[Observed, Trainer]:
    observed = Observed()
    often = {f"{name}_strategy": "steps" for name in ("eval", "save")} | {"eval_steps": EVERY, "save_steps": EVERY}
    args = arguments(folder, max_steps=STEPS, per_device_eval_batch_size=64, **{**often, **BEST, **settings})
    callbacks = [*more, observed, PaceCallback(lr=(1e-4, 1.0))]
    data = {"train_dataset": Labelled(few()), "eval_dataset": Labelled(held_out())}
    trainer = Trainer(Overfitting(), args, **data, callbacks=callbacks)
    trainer.pop_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return observed, trainer


@pytest.fixture(scope="module", params=["steps", "best"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Observed, Trainer]:
    """An undisturbed run."""
    return train(tmp_path_factory.mktemp("whole"), save_strategy=request.param)


def test_the_best_model_is_restored_at_the_end_as_it_was(whole: tuple[Observed, Trainer]) -> None:
    observed, trainer = whole
    best = observed.values[observed.best_step]
    assert RANGE_TEST < observed.best_step < STEPS
    assert best < 0.7 * observed.values[STEPS]
    assert trainer.state.best_metric == best
    assert held_out_loss(trainer.model.net) == pytest.approx(best)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(best)


def test_the_best_checkpoint_holds_the_state_of_the_rate(whole: tuple[Observed, Trainer]) -> None:
    observed, trainer = whole
    folder = Path(trainer.state.best_model_checkpoint)
    assert folder.name == f"checkpoint-{observed.best_step}"
    state = torch.load(folder / STATE_FILE, weights_only=True)
    assert state["last_epoch"] == observed.best_step
    assert state["controller"]["loss_pairs"]
    (callback,) = [one for one in trainer.callback_handler.callbacks if isinstance(one, PaceCallback)]
    assert callback.pace is not None
    assert state["controller"]["peak"] != callback.pace.controller.peak  # corrected later


def test_training_goes_on_from_the_best_checkpoint_at_the_same_rates(whole: tuple[Observed, Trainer]) -> None:
    observed, trainer = whole
    args, best = trainer.args, trainer.state.best_model_checkpoint
    again, resumed = train(Path(args.output_dir), resume=best, save_strategy=args.save_strategy)
    assert again.rates == observed.rates[observed.best_step :]
    assert again.values == {step: value for step, value in observed.values.items() if step > observed.best_step}
    assert resumed.state.best_model_checkpoint == best
    assert held_out_loss(resumed.model.net) == pytest.approx(observed.values[observed.best_step])


@pytest.mark.parametrize("strategy", ["steps", "epoch"])
def test_weights_of_the_range_test_are_not_evaluated(tmp_path: Path, strategy: str) -> None:
    observed, _ = train(tmp_path, eval_strategy=strategy, save_strategy=strategy)
    assert min(observed.values) == RANGE_TEST  # when the weights are back at the start
    assert observed.values[RANGE_TEST] == pytest.approx(held_out_loss(Overfitting().net))


def test_stopping_early_counts_from_the_end_of_the_range_test(tmp_path: Path) -> None:
    observed, trainer = train(tmp_path, EarlyStoppingCallback(early_stopping_patience=3))
    assert RANGE_TEST < observed.best_step == trainer.state.global_step - 3 * EVERY
    assert held_out_loss(trainer.model.net) == pytest.approx(observed.values[observed.best_step])
