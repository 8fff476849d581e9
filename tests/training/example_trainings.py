"""Trainings that several test files use."""

from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from paceline.problems.digits import load_digits
from paceline.training import DeviceBatches, TorchTraining


def small_network(
    optimizer: str = "adam", *, evaluate: bool = True, loader: bool = True, every: int | None = 5, **settings
) -> TorchTraining:
    """A small network with batch norm and dropout, two parameter groups and four batches an epoch."""
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 2))
    for i, p in enumerate(model.parameters()):
        nn.init.normal_(p, std=0.3, generator=torch.Generator().manual_seed(i))
    groups = [{"params": list(model[0].parameters()), "lr": 1e-2}, {"params": list(model[3].parameters()), "lr": 1e-3}]
    optimizers = {
        "adam": torch.optim.Adam,
        "sgd": partial(torch.optim.SGD, momentum=0.9),
        "adamw": partial(torch.optim.AdamW, amsgrad=True),
    }
    loss = nn.CrossEntropyLoss()
    batches = (
        DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True) if loader else [(x[:25], y[:25]), (x[25:], y[25:])]
    )
    return TorchTraining(
        model,
        optimizers[optimizer](groups),
        batches=batches,
        loss=lambda net, pair: loss(net(pair[0]), pair[1]),
        evaluate=(lambda net: float(loss(net(x), y))) if evaluate else None,
        every=every,
        **settings,
    )


OPTIMIZERS = {
    "adam": partial(torch.optim.Adam, amsgrad=True),
    "adamw": torch.optim.AdamW,
    "momentum": partial(torch.optim.SGD, momentum=0.9, dampening=0.5),
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
}


def device_digits(
    optimizer: str = "adam", *, evaluate: str = "tensor", device: str = "cpu", every: int = 10, **settings
) -> TorchTraining:
    """Digits in `DeviceBatches`, 21 batches an epoch; a training that can be recorded."""
    images, labels, valid_images, valid_labels = (data.to(device) for data in load_digits())
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 24, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))
    for i, p in enumerate(model.parameters()):
        nn.init.normal_(p, std=0.1, generator=torch.Generator().manual_seed(i))
    model.to(device)
    groups = [{"params": list(model[1].parameters())}, {"params": list(model[4].parameters()), "lr": 5e-4}]
    loss = nn.CrossEntropyLoss()
    held_out = valid_images.view(-1, 1, 8, 8)
    evaluations = {
        "tensor": lambda net: loss(net(held_out), valid_labels),
        "number": lambda net: float(loss(net(held_out), valid_labels)),
        "none": None,
    }
    training = TorchTraining(
        model,
        OPTIMIZERS[optimizer](groups, lr=1e-3),
        batches=DeviceBatches(images.view(-1, 1, 8, 8), labels, size=64, crop=1, flip=False),
        loss=lambda net, batch: loss(net(batch[0]), batch[1]),
        evaluate=evaluations[evaluate],
        every=every,
        **settings,
    )
    training.reseed(0)
    return training


class CountingOptimizer(torch.optim.Optimizer):
    """An optimiser that counts on the host, which a recording cannot repeat."""

    def __init__(self, params, lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["count"] = self.state[p].get("count", 0) + 1
                p -= group["lr"] * self.state[p]["count"] * p.grad
