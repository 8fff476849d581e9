"""A training with a mistake in one place of its code. It counts the intervals that begin, in any process."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paceline import Schedule, TorchTraining
from paceline.training import DeviceBatches

PLACES = ("factory", "loss", "step", "evaluate")
LATER = 40  # steps after which a fork fails in a later interval


class WrongView(nn.Module):
    """A model with a wrong view."""

    def forward(self, x: Tensor) -> Tensor:
        return x.view(len(x), 9)


def wrong_view() -> None:
    WrongView()(torch.zeros(4, 8))


def missing_key() -> None:
    {"image": 1.0}["label"]


def wrong_device() -> None:
    nn.Linear(8, 2)(torch.zeros(4, 8, device="meta"))


def failing_assertion() -> None:
    assert torch.zeros(4, 8).shape == (8, 4)


MISTAKES: dict[Callable[[], None], tuple[type[Exception], str]] = {  # what each raises, and the line that raises it
    wrong_view: (RuntimeError, "return x.view(len(x), 9)"),
    missing_key: (KeyError, '{"image": 1.0}["label"]'),
    wrong_device: (RuntimeError, "nn.Linear(8, 2)(torch.zeros(4, 8"),
    failing_assertion: (AssertionError, "assert torch.zeros(4, 8).shape == (8, 4)"),
}


def mark(folder: Path, name: str) -> None:
    """Count one more of these, from any process."""
    with (folder / name).open("a") as marks:
        marks.write("x")


def count(folder: Path, name: str) -> int:
    """How many were counted."""
    return len((folder / name).read_text()) if (folder / name).exists() else 0


def training(folder: Path, place: str, mistake: Callable[[], None], *, later: bool = False) -> TorchTraining:
    """A small network with a mistake in one place. It counts the intervals that begin.

    Args:
        folder: where it counts.
        place: where the mistake is.
        mistake: raises.
        later: whether it is made only once, by the first fork after `LATER` steps.
    """

    def at(here: str) -> None:
        if here == place and (not later or (run.steps_done > LATER and is_first(folder))):
            mistake()

    at("factory")
    device, source = "cuda" if torch.cuda.is_available() else "cpu", torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=source).to(device)
    y = (x.sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    for i, parameter in enumerate(model.parameters()):
        nn.init.normal_(parameter, std=0.3, generator=torch.Generator(device).manual_seed(i))

    def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        at("loss")
        return nn.functional.cross_entropy(net(batch[0]), batch[1])

    def evaluate(net: nn.Module) -> float:
        at("evaluate")
        return float(nn.functional.cross_entropy(net(x), y))

    def step(net: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[Tensor, Tensor]) -> Tensor:
        at("step")
        optimizer.zero_grad()
        value = loss(net, batch)
        value.backward()
        optimizer.step()
        return value

    run = TorchTraining(
        model,
        torch.optim.Adam(model.parameters()),
        batches=DeviceBatches(x, y, size=16),
        loss=loss,
        evaluate=evaluate,
        step=step if place == "step" else None,
        every=2,
    )
    run.reseed(0)
    advance = run.advance

    def counted(schedule: Schedule, stop: int) -> Iterator[Any]:
        mark(folder, "begun")
        return advance(schedule, stop)

    run.advance = counted
    return run


def is_first(folder: Path) -> bool:
    """Whether nobody has asked before, in any process."""
    with suppress(FileExistsError):
        os.close(os.open(folder / "first", os.O_CREAT | os.O_EXCL))
        return True
    return False
