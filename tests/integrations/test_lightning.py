"""The callback against the real package: the rates of `PaceLR` by hand, cut off and continued."""

import gc
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import pytest
import torch
from torch import Tensor, nn

from paceline import InputError, PaceLR
from paceline.errors import TrainingError
from paceline.integrations.lightning import PaceCallback, lightning_training
from tests.integrations.lightning_modules import QUIET, Net, in_order

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # a warning of torch in Trainer.fit
]


def fitted(callback: PaceCallback, epochs: int = 30, ckpt: Any = None, **settings: Any) -> Any:
    torch.manual_seed(0)
    module = Net(dropout=0.0)
    trainer = L.Trainer(max_epochs=epochs, callbacks=[callback], **{**QUIET, **settings})
    trainer.fit(module, in_order(), ckpt_path=ckpt)
    return trainer


class Rates(L.Callback):
    def __init__(self) -> None:
        self.seen = list[float]()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.seen.append(optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize(("accumulate", "clip"), [(1, None), (2, 0.05)])
def test_the_callback_is_pacelr_by_hand(accumulate: int, clip: float | None) -> None:
    trainer = fitted(PaceCallback((1e-4, 0.1)), accumulate_grad_batches=accumulate, gradient_clip_val=clip)
    steps = 30 * (3 if accumulate == 2 else 5)
    assert trainer.global_step == steps
    module = Net(dropout=0.0).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    pace = PaceLR(optimizer, (1e-4, 0.1), steps, model=module)
    for _ in range(30):
        batches = list(in_order())
        for first in range(0, 5, accumulate):
            losses = list[Tensor]()
            optimizer.zero_grad()
            for batch in batches[first : first + accumulate]:
                module.seen += 1
                losses.append(nn.functional.cross_entropy(module.net(batch[0]), batch[1]) + 1e-4 * module.seen)
                (losses[-1] / accumulate).backward()
            pace.read_gradients()
            if clip is not None:
                nn.utils.clip_grad_norm_(module.parameters(), clip)
            optimizer.step()
            pace.step(torch.stack(losses).mean())
    torch.testing.assert_close(trainer.lightning_module.weights(), module.weights(), rtol=1e-4, atol=1e-5)
    assert trainer.callbacks[0].pace.controller.peak == pytest.approx(pace.controller.peak, abs=1e-4)


def test_a_run_resumed_from_a_checkpoint_of_lightning_follows_the_same_schedule(tmp_path: Path) -> None:
    whole, first, second = Rates(), Rates(), Rates()

    def run(rates: Rates, max_epochs: int, ckpt: Any = None) -> Any:
        module = Net(dropout=0.0)
        trainer = L.Trainer(max_epochs=max_epochs, callbacks=[PaceCallback((1e-4, 1.0), steps=150), rates], **QUIET)
        trainer.fit(module, in_order(), ckpt_path=ckpt)
        return trainer

    expected = run(whole, 30)
    run(first, 12).save_checkpoint(tmp_path / "cut.ckpt")
    resumed = run(second, 30, tmp_path / "cut.ckpt")
    assert first.seen + second.seen == whole.seen
    assert len(whole.seen) == 150
    assert torch.equal(resumed.lightning_module.weights(), expected.lightning_module.weights())


class OwnRate(L.Callback):
    """Sets a rate of its own, as a warm-up by hand does."""

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        trainer.optimizers[0].param_groups[0]["lr"] = 0.5


def test_a_rate_that_a_callback_sets_is_an_error() -> None:
    trainer = L.Trainer(max_epochs=9, callbacks=[OwnRate(), PaceCallback((1e-4, 0.1))], **QUIET)
    with pytest.raises(TrainingError, match=r"rate at step 1 is 0.5, but PaceLR had set 0.0001"):
        trainer.fit(Net(), in_order())


class Stop(L.Callback):
    """Ends a run as EarlyStopping does."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        trainer.should_stop = trainer.current_epoch == 5


def ended(trainer: L.Trainer, path: "Path | None" = None) -> list[str]:
    """What is said when a run is over and its trainer gone."""
    trainer.fit(Net(), in_order())
    if path is not None:
        trainer.save_checkpoint(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for callback in trainer.callbacks:  # pyright: ignore[reportAttributeAccessIssue]
            if isinstance(callback, PaceCallback):
                callback.pace = None
        gc.collect()
    return [str(w.message) for w in caught if "a run with PaceLR" in str(w.message)]


def test_a_trainer_that_makes_fewer_steps_is_told_about(tmp_path: Path) -> None:
    def trainer(*others: L.Callback, steps: int | None = 150) -> L.Trainer:
        return L.Trainer(max_epochs=9, callbacks=[*others, PaceCallback((1e-4, 0.1), steps)], **QUIET)

    (message,) = ended(trainer())
    assert "ended at step 45 of 150, at" in message
    assert not ended(trainer(), tmp_path / "later.ckpt")
    assert not ended(trainer(Stop()))
    assert not ended(trainer(steps=None))
    with pytest.warns(UserWarning, match="constructed for 30 steps, and they are over"):
        ended(trainer(steps=30))


def test_a_checkpoint_of_a_run_of_another_length_is_refused(tmp_path: Path) -> None:
    fitted(PaceCallback((1e-4, 0.1)), 9).save_checkpoint(tmp_path / "short.ckpt")
    with pytest.raises(InputError, match=r"of a run with steps=45 .* constructed with steps=60"):
        fitted(PaceCallback((1e-4, 0.1)), 12, tmp_path / "short.ckpt")


def test_the_callback_says_what_it_cannot_work_with() -> None:
    class Scheduled(Net):
        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.parameters())
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 10)]

    class Manual(Net):
        automatic_optimization = False

    pace = [PaceCallback((1e-4, 1.0))]
    with pytest.raises(InputError, match=r"a scheduler \(StepLR\), and two cannot set one rate"):
        L.Trainer(max_epochs=9, callbacks=pace, **QUIET).fit(Scheduled(), in_order())
    with pytest.raises(InputError, match="got automatic_optimization=False"):
        lightning_training(Manual, in_order)()
    with pytest.raises(InputError, match="needs the length of the run"):
        L.Trainer(max_epochs=-1, callbacks=pace, **QUIET).fit(Net(), in_order())
    L.Trainer(fast_dev_run=True, callbacks=pace, **QUIET).fit(Net(), in_order())
