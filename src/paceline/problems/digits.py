"""A real problem that needs no download: a small network on scikit-learn's handwritten digits, trained with Adam.

Training images are shifted by up to a pixel at random, so that the network cannot learn them by heart. Without the
shifts the validation loss depends more on when the network begins to overfit than on the learning rate. Validation
images are evaluated under all nine shifts, which halves the difference between seeds.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from paceline.traces import Objective, Schedule, Trace
from paceline.training import TorchTraining, values_by_weights


@cache
def load_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images and labels, then validation ones (a quarter of 1,797), pixels in [0, 1]."""
    from sklearn.datasets import load_digits as bundled  # pyright: ignore

    data = bundled()  # pyright: ignore
    images = torch.tensor(np.asarray(data.data) / 16.0, dtype=torch.float32)  # pyright: ignore
    labels = torch.tensor(np.asarray(data.target), dtype=torch.long)  # pyright: ignore
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, valid = order[450:], order[:450]
    return images[train], labels[train], images[valid], labels[valid]


def shifted(images: Tensor) -> Tensor:
    """All nine shifts by up to a pixel, stacked."""
    padded = nn.functional.pad(images.view(-1, 8, 8), (1, 1, 1, 1))
    return torch.stack([padded[:, i : i + 8, j : j + 8].flatten(1) for i in range(3) for j in range(3)])


class Batches:
    """Random batches of randomly shifted images, drawn with torch's generator."""

    def __init__(self, images: Tensor, labels: Tensor, size: int) -> None:
        self.shifted, self.labels, self.size = shifted(images), labels, size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(len(self.labels) // self.size):
            shift, row = torch.randint(9, (self.size,)), torch.randint(len(self.labels), (self.size,))
            yield self.shifted[shift, row], self.labels[row]


def digits_training(seed: int = 0, *, every: int | None = None, batch: int = 64, width: int = 128) -> TorchTraining:
    """A run of a small network; the same seed gives the same weights to start from and the same batches."""
    images, labels, valid_images, valid_labels = load_digits()
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            bound = parameter.shape[-1] ** -0.5
            parameter.uniform_(-bound, bound, generator=source)
    loss_of = nn.CrossEntropyLoss()
    held_out, answers = shifted(valid_images).flatten(0, 1), valid_labels.repeat(9)
    training = TorchTraining(
        model,
        torch.optim.Adam(model.parameters()),
        batches=Batches(images, labels, batch),
        loss=lambda net, pair: loss_of(net(pair[0]), pair[1]),
        evaluate=lambda net: float(loss_of(net(held_out), answers)),
        every=every,
    )
    training.reseed(seed)
    return training


def train_digits(schedule: Schedule, *, seed: int = 0, every: int = 10, name: str = "") -> Trace:
    """Train under a schedule and return the validation loss of the raw weights as a trace."""
    observed = [(step, value) for step, value in digits_training(seed, every=every).advance(schedule, schedule.steps)]
    steps = [step for step, _ in observed]
    values = np.array([values_by_weights(value)["raw"] for _, value in observed])
    failed = not bool(np.isfinite(values).all())
    return Trace(np.array(steps), values, schedule, name=name, objective=Objective(transform="log"), failed=failed)
