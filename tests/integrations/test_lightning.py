"""Against the real package: the same weights as Trainer.fit and as PaceLR by hand, cut off and continued."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import paceline
from paceline import InputError, PaceLR, Schedule
from paceline.errors import TrainingError
from paceline.integrations import lambda_lr
from paceline.testing import check_training
from tests.training.resuming import resumed

L = pytest.importorskip("lightning.pytorch")
from torchmetrics import MeanMetric  # noqa: E402  comes with lightning

from paceline.integrations.lightning import PaceCallback, lightning_training  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # what torch says to Trainer.fit
]
SCHEDULE = Schedule.of("linear", 1e-2, 40)
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "accelerator": "cpu",
}


def examples() -> TensorDataset:
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, (x.sum(1) > 0).long())


class Net(L.LightningModule):
    """A small network with all that has a state: normalisation, dropout, a counter of its own, a metric."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(dropout), nn.Linear(8, 2))
        for i, parameter in enumerate(self.net.parameters()):
            nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(i))
        self.metric, self.seen, self.places = MeanMetric(), 0, list[tuple[int, int]]()

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        self.seen += 1
        self.places.append((self.current_epoch, self.global_step))
        self.log("train_loss", 1.0, prog_bar=True)
        return {"loss": nn.functional.cross_entropy(self.net(batch[0]), batch[1]) + 1e-4 * self.seen}

    def validation_step(self, batch: Any) -> None:
        logits = self.net(batch[0])
        self.metric(logits.argmax(1) == batch[1])
        self.log_dict({"val_loss": nn.functional.cross_entropy(logits, batch[1]), "acc": self.metric})

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=1e-2)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["seen"] = self.seen

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.seen = checkpoint["seen"]

    def weights(self) -> Tensor:
        return torch.cat([t.detach().double().flatten() for t in self.net.state_dict().values()])


class Data(L.LightningDataModule):
    def setup(self, stage: str) -> None:
        self.all = examples()

    def train_dataloader(self) -> Any:
        return DataLoader(self.all, batch_size=16, shuffle=True)

    def val_dataloader(self) -> Any:
        return DataLoader(self.all, batch_size=16)


def in_order(size: int = 10) -> DataLoader:
    return DataLoader(examples(), batch_size=size)


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


# forks


def make(**settings: Any) -> Any:
    return lightning_training(Net, Data, accelerator="cpu", every=5, **settings)()


def run(training: Any, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


@pytest.mark.parametrize("pause", [1, 4, 17])
@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}])
def test_resumed_from_a_checkpoint_a_fork_continues_bit_for_bit(tmp_path: Path, settings: Any, pause: int) -> None:
    whole, first, second, _ = resumed(lambda: make(**settings), SCHEDULE, tmp_path, pause)
    assert torch.equal(second.module.weights(), whole.module.weights())
    assert second.module.seen == whole.module.seen
    assert first.module.places + second.module.places == whole.module.places


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}])
def test_it_conforms_to_what_a_training_must_do(settings: Any) -> None:
    check_training(lambda: make(**settings), steps=24)


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 2, "gradient_clip_val": 0.05}])
def test_a_fork_ends_with_the_weights_that_fit_would_have_made(settings: Any) -> None:
    """And goes through the same hooks in the same order."""

    def followed(module: Any) -> Any:
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-2, momentum=0.9)
        return [optimizer], [{"scheduler": lambda_lr(optimizer, SCHEDULE), "interval": "step"}]

    called = dict[str, list[str]](fit=[], fork=[])
    names = [n for n in dir(L.LightningModule) if n.startswith(("on_train", "on_before", "on_after", "optimizer_"))]

    def heard(kind: str, base: type) -> Any:
        def hook(name: str) -> Any:
            def called_too(self: Any, *args: Any, **kwargs: Any) -> Any:
                called[kind].append(name)
                return getattr(super(made, self), name)(*args, **kwargs)

            return called_too

        made = type("Heard", (base,), {name: hook(name) for name in names if name != "on_train_end"})
        return made

    class Fitted(Net):
        configure_optimizers = followed

    class Forked(Net):
        def configure_optimizers(self) -> Any:
            return followed(self)[0]

    module = heard("fit", Fitted)(dropout=0.0)
    L.Trainer(max_steps=40, **QUIET, **settings).fit(module, in_order())
    settings = {**settings, "accelerator": "cpu", "average": None}
    fork = lightning_training(lambda: heard("fork", Forked)(dropout=0.0), in_order, **settings)()
    run(fork, 40)
    assert torch.equal(fork.module.weights(), module.weights())
    assert fork.module.places == module.places
    assert called["fork"] == called["fit"][: len(called["fork"])]
    assert set(called["fit"][len(called["fork"]) :]) <= {"on_train_epoch_end"}


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
    assert [set(v) for _, v in run(without, 10)] == [{"raw", "averaged"}] * 2
    with pytest.raises(InputError, match="monitor='acc' needs validation data"):
        lightning_training(Net, in_order, accelerator="cpu", monitor="acc")()
    with pytest.raises(InputError, match="cannot take callbacks, devices: a fork takes accelerator"):
        lightning_training(Net, Data, devices=2, callbacks=[])
    with pytest.raises(InputError, match="Net has no train_dataloader: pass make_data"):
        lightning_training(Net)()
    with pytest.raises(InputError, match=r"make_module must be a function or a class .* got a Net: pass what makes it"):
        lightning_training(Net(), in_order)


def test_a_single_loader_may_come_in_a_list() -> None:
    alone, listed = (
        lightning_training(Net, data, accelerator="cpu", every=5)() for data in (in_order, lambda: [in_order()])
    )
    assert [step for step, _ in run(alone, 10)] == [step for step, _ in run(listed, 10)]


def test_tuned_in_a_study_without_a_word_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_training = lightning_training(Net, Data, monitor="acc", accelerator="cpu", every=4)
    result = paceline.tune(make_training, steps=200, lr=(1e-4, 1e-1), mode="max")
    Net().load_state_dict(result.weights())
    assert 0.9 < result.value <= 1.0
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    training = make_training()
    kept = (torch.get_rng_state().tolist(), random.getstate())
    run(training, 8)
    assert kept == (torch.get_rng_state().tolist(), random.getstate())
