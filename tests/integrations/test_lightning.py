"""The callback against the real package: the rates of `PaceLR` by hand, cut off and continued."""

from pathlib import Path
from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import pytest
import torch
from torch import Tensor, nn

from paceline import InputError, PaceLR
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
