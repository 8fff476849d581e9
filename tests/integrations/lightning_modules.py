"""A LightningModule with everything that has a state, its data, and a quiet Trainer."""

from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

from paceline import Schedule
from tests.integrations.overfitting import few, held_out, network

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


class Overfitting(L.LightningModule):
    """A module whose held-out loss turns up."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def training_step(self, batch: Any) -> Tensor:
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch: Any) -> None:
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def test_step(self, batch: Any) -> None:
        self.validation_step(batch)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters())


def few_and_held_out() -> tuple[DataLoader, DataLoader]:
    return DataLoader(TensorDataset(*few()), batch_size=16), DataLoader(TensorDataset(*held_out()), batch_size=64)
