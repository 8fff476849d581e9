"""What a fork cannot have is refused, and batches and loaders are those of the module or of its data."""

from typing import Any

import pytest
import torch

from paceline import InputError
from paceline.integrations.lightning import lightning_training
from paceline.integrations.lightning_setup import BatchTransfer, choose_loaders, connect_module, idle_trainer
from tests.integrations.lightning_modules import SCHEDULE, Data, Net, in_order

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*configure_optimizers.*returned.*None:UserWarning"),
]


class Manual(Net):
    automatic_optimization = False


class Scheduled(Net):
    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters())
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 10)]


class NoOptimizer(Net):
    def configure_optimizers(self) -> Any:
        return None


class OwnLoaders(Net):
    held_out = 1

    def train_dataloader(self) -> Any:
        return in_order()

    def val_dataloader(self) -> Any:
        return [in_order(16)] * self.held_out


class ThreeLoaders(OwnLoaders):
    held_out = 3


@pytest.mark.parametrize(
    ("module", "data", "message"),
    [
        (Manual, in_order, "got automatic_optimization=False"),
        (Scheduled, in_order, r"a scheduler \(StepLR\), and two cannot set one rate"),
        (NoOptimizer, in_order, "configure_optimizers must return one optimiser, got 0"),
        (Net, None, "Net has no train_dataloader: pass make_data"),
        (ThreeLoaders, None, "val_dataloader must return one loader, got 3"),
    ],
)
def test_modules_that_cannot_be_forked_are_refused(module: Any, data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lightning_training(module, data, accelerator="cpu")()


def test_loaders_are_those_of_the_data_or_of_the_module() -> None:
    pair = ([1], [2])
    module = OwnLoaders()
    assert choose_loaders(module, pair) == pair
    assert choose_loaders(module, [[1]]) == ([1], None)
    train, held_out = choose_loaders(module, None)
    assert len(train) == 5  # type: ignore[arg-type]
    assert held_out is not None
    data = Data()
    data.setup("fit")
    assert len(choose_loaders(module, data)[0]) == 4  # type: ignore[arg-type]


def test_batches_go_through_the_hooks_of_the_data_first() -> None:
    calls: list[str] = []

    class Hooked(Data):
        def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            calls.append("before, of the data")
            return batch

    class HookedNet(Net):
        def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            raise AssertionError("the data module has this hook")

        def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            calls.append("after, of the module")
            return 2 * batch

    trainer = idle_trainer({"accelerator": "cpu"})
    module, data = HookedNet(), Hooked()
    connect_module(trainer, module, data)
    batch = BatchTransfer(trainer, module, data)(torch.ones(2))
    assert batch.tolist() == [2.0, 2.0]
    assert calls == ["before, of the data", "after, of the module"]


def test_the_trainer_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    idle_trainer({"accelerator": "cpu"})
    assert capfd.readouterr() == ("", "")


def run(training: Any, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


def test_a_single_loader_may_come_in_a_list() -> None:
    alone, listed = (
        lightning_training(Net, data, accelerator="cpu", every=5)() for data in (in_order, lambda: [in_order()])
    )
    assert [step for step, _ in run(alone, 10)] == [step for step, _ in run(listed, 10)]
