"""The callback beside Lightning's own ModelCheckpoint and EarlyStopping: the best weights are kept, and go on."""

from pathlib import Path
from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from paceline.integrations.lightning import PaceCallback
from paceline.strategy.single_run.rules import range_test_steps
from tests.integrations.lightning_modules import QUIET, Overfitting, few_and_held_out
from tests.integrations.overfitting import held_out_loss

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # a warning of torch in Trainer.fit
    pytest.mark.filterwarnings("ignore:The dirpath has changed:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*exists and is not empty:UserWarning"),
]
STEPS, EPOCHS = 200, 100
RANGE_TEST = range_test_steps(STEPS)


class Observed(L.Callback):
    """Rates of the updates, and values by step."""

    def __init__(self) -> None:
        self.rates, self.values = list[float](), dict[int, float]()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.rates.append(optimizer.param_groups[0]["lr"])

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self.values[trainer.global_step] = float(trainer.callback_metrics["val_loss"])


class Run:
    """A fit with ModelCheckpoint, and further callbacks after ours or before."""

    def __init__(self, folder: Path, *more: Any, before: tuple[Any, ...] = (), ckpt: Any = None) -> None:
        self.pace, self.observed = PaceCallback(lr=(1e-4, 1.0)), Observed()
        self.best = ModelCheckpoint(folder, monitor="val_loss", save_top_k=1)
        callbacks = [*before, self.pace, self.observed, self.best, *more]
        self.trainer = L.Trainer(max_epochs=EPOCHS, callbacks=callbacks, **{**QUIET, "enable_checkpointing": True})
        self.module = Overfitting()
        self.trainer.fit(self.module, *few_and_held_out(), ckpt_path=ckpt)

    @property
    def best_step(self) -> int:
        return min(self.observed.values, key=lambda step: self.observed.values[step])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An undisturbed run."""
    return Run(tmp_path_factory.mktemp("whole"))


def test_the_best_checkpoint_is_of_the_best_value_and_holds_the_state_of_the_rate(whole: Run) -> None:
    best = whole.observed.values[whole.best_step]
    assert RANGE_TEST < whole.best_step < STEPS
    assert best < 0.7 * whole.observed.values[STEPS]
    assert float(whole.best.best_model_score) == pytest.approx(best)
    saved = torch.load(whole.best.best_model_path, weights_only=True)
    assert saved["global_step"] == whole.best_step
    state = saved["callbacks"]["PaceCallback"]
    assert state["last_epoch"] == whole.best_step
    assert state["controller"]["loss_pairs"]
    assert whole.pace.pace is not None
    assert state["controller"]["peak"] != whole.pace.pace.controller.peak  # corrected later
    module = Overfitting()
    module.load_state_dict(saved["state_dict"])
    assert held_out_loss(module.net) == pytest.approx(best)


def test_training_goes_on_from_the_best_checkpoint_at_the_same_rates(whole: Run, tmp_path: Path) -> None:
    again = Run(tmp_path, ckpt=whole.best.best_model_path)
    assert again.observed.rates == whole.observed.rates[whole.best_step :]
    later = {step: value for step, value in whole.observed.values.items() if step > whole.best_step}
    assert again.observed.values == later


def test_the_best_checkpoint_is_tested_and_nothing_of_it_stays_in_the_callback(tmp_path: Path) -> None:
    run = Run(tmp_path)
    (tested,) = run.trainer.test(run.module, few_and_held_out()[1], ckpt_path="best", verbose=False)
    assert tested["val_loss"] == pytest.approx(run.observed.values[run.best_step])
    assert held_out_loss(run.module.net) == pytest.approx(run.observed.values[run.best_step])
    run.trainer.fit_loop.max_epochs = EPOCHS + 10
    run.trainer.fit(run.module, *few_and_held_out())
    assert run.pace.pace is not None
    assert run.pace.pace.controller.steps == run.pace.pace.last_epoch == 20  # a run of its own, not the tested one's


@pytest.mark.parametrize("comes_first", [True, False])
@pytest.mark.parametrize("patience", [3, 10])
def test_stopping_early_counts_from_the_end_of_the_range_test(
    whole: Run, tmp_path: Path, comes_first: bool, patience: int
) -> None:
    stopping = EarlyStopping("val_loss", patience=patience)
    run = Run(tmp_path, *([] if comes_first else [stopping]), before=(stopping,) if comes_first else ())
    values = whole.observed.values
    last = expected_stop({step: value for step, value in values.items() if step >= RANGE_TEST}, patience)
    assert run.observed.values == {step: value for step, value in values.items() if step <= last}
    assert run.observed.rates == whole.observed.rates[: len(run.observed.rates)]
    assert float(run.best.best_model_score) == pytest.approx(min(run.observed.values.values()))
    assert (stopping.check_finite, stopping.patience) == (True, patience)


def expected_stop(values: dict[int, float], patience: int) -> int:
    """The step at which a run ends that waits for a better value for so many validations."""
    best, waited = float("inf"), 0
    for step, value in values.items():
        best, waited = (value, 0) if value < best else (best, waited + 1)
        if waited == patience:
            return step
    return max(values)
