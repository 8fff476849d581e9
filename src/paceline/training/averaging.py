"""An average of the weights over the last part of a run.

weight of the newest at step t: 1 / (1 + share t)   (covers about the last `share` of the steps so far)

Averaging removes gradient noise. A run judged by its averaged weights does not look better just because its rate was
lowered (docs/design.md).
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from paceline.errors import InputError

AVERAGE_SHARE = 0.15


def newest_weight(count: float, share: float = AVERAGE_SHARE) -> float:
    """The weight of the newest weights, after `count` updates of the average."""
    return 1.0 / (1.0 + share * count)


class WeightAverage(nn.Module):
    """A running average of a model's parameters and buffers.

    Integer tensors, and tensors that are not finite at the start (a mask of -inf, say), are copied and not averaged.
    On a GPU the count of updates stays on the device, so an update never makes the host wait.

    `TorchTraining` has one. In a loop of your own, update it after each step of the optimiser, report the values of
    `module` as "averaged", and keep its `state_dict()` with the state of the run.

    Args:
        model: the model; `module` starts as a copy of it.
        share: share of the steps so far that the average covers.

    >>> model = nn.Linear(1, 1)
    >>> average = WeightAverage(model)
    >>> for weight in (0.0, 1.0, 2.0):
    ...     _ = nn.init.constant_(model.weight, weight)
    ...     average.update(model)
    >>> round(average.module.weight.item(), 2)
    1.74
    """

    n_averaged: Tensor

    def __init__(self, model: nn.Module, share: float = AVERAGE_SHARE) -> None:
        super().__init__()
        self.module, self.share = _copied(model), share
        device = next((tensor.device for tensor in _tensors(model)), None)
        self.register_buffer("n_averaged", torch.zeros((), dtype=torch.long, device=device))
        self._is_averaged = [t.is_floating_point() and bool(t.isfinite().all()) for t in _tensors(model)]
        self._slots: tuple[list[_Slot], list[_Slot]] = [], []  # of the average and of the model
        self._model: list[nn.Module] = []  # that the slots are of; in a list, since it is no part of this module

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Include the model's present weights."""
        if not self._model or self._model[0] is not model:
            self._model, self._slots = [model], (list(_slots(self.module)), list(_slots(model)))
        groups = dict[tuple[torch.device, bool], tuple[list[Tensor], list[Tensor]]]()
        for own, slot, is_averaged in zip(*self._slots, self._is_averaged, strict=True):
            new = slot.tensor
            averages, newest = groups.setdefault((new.device, is_averaged), ([], []))
            averages.append(own.tensor)
            newest.append(new)
        for (device, is_averaged), (averages, newest) in groups.items():
            if not is_averaged:
                torch._foreach_copy_(averages, newest)  # pyright: ignore
            elif not self.n_averaged.is_cuda:
                torch._foreach_lerp_(averages, newest, newest_weight(float(self.n_averaged), self.share))  # pyright: ignore
            else:
                change = torch._foreach_sub(newest, averages)  # pyright: ignore
                torch._foreach_mul_(change, (1.0 / (1.0 + self.share * self.n_averaged)).to(device))  # pyright: ignore
                torch._foreach_add_(averages, change)  # pyright: ignore
        self.n_averaged += 1

    @contextmanager
    def swap_into(self, model: nn.Module) -> Generator[None]:
        """Give the model the averaged weights inside the block, and its own again afterwards.

        For frameworks that can only evaluate the model they were set up with, not a copy of it.
        """
        own = [tensor.detach().clone() for tensor in _tensors(model)]
        _copy(_tensors(model), _tensors(self.module))
        try:
            yield
        finally:
            _copy(_tensors(model), own)


def _copied(model: nn.Module) -> nn.Module:
    try:
        return deepcopy(model)
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise InputError(
            f"the model cannot be copied, which an average of its weights needs ({type(error).__name__}: {first}): "
            "pass average=None to train without the average, or make copy.deepcopy(model) work"
        ) from error


class _Slot(NamedTuple):
    """Where a module holds a tensor: it may put another one there. Going through all modules takes far longer."""

    tensors: dict[str, Any]
    name: str

    @property
    def tensor(self) -> Tensor:
        """What it holds now."""
        return self.tensors[self.name]


def _slots(model: nn.Module) -> Iterator[_Slot]:
    """The places of a model's parameters and buffers, in the order of `_tensors`."""
    modules = list(model.modules())
    holders = [m._parameters for m in modules] + [m._buffers for m in modules]  # pyright: ignore[reportPrivateUsage]
    slots = {id(tensor): _Slot(held, name) for held in reversed(holders) for name, tensor in reversed(held.items())}
    return (slots[id(tensor)] for tensor in _tensors(model))


@torch.no_grad()
def _copy(targets: Iterable[Tensor], sources: Iterable[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _tensors(model: nn.Module) -> "chain[Tensor]":
    return chain(model.parameters(), model.buffers())
