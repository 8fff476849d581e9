"""The average of the weights over the last share of the steps so far.

weight of the newest at step t: 1 / (1 + share t)   (a window of `share` of the run so far; 15 % by default)

Judging a run by its averaged weights sees through gradient noise, so that a fork does not look better just because it
lowered its rate (docs/design.md).
"""

from copy import deepcopy
from itertools import chain

import torch
from torch import Tensor, nn

SHARE = 0.15


def newest_weight(count: float, share: float = SHARE) -> float:
    """The weight of the newest of the weights, after `count` updates of the average."""
    return 1.0 / (1.0 + share * count)


class Average(nn.Module):
    """A running average of a model's parameters and buffers; what is not a float is copied.

    On a GPU the count of updates is read there too, so that an update never waits for the device.

    Args:
        model: the model; `module` starts as a copy of it.
        share: of the steps so far that the average reaches back over.
    """

    n_averaged: Tensor

    def __init__(self, model: nn.Module, share: float = SHARE) -> None:
        super().__init__()
        self.module, self.share = deepcopy(model), share
        device = next((tensor.device for tensor in _tensors(model)), None)
        self.register_buffer("n_averaged", torch.zeros((), dtype=torch.long, device=device))

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take the model's present weights in."""
        pairs = list(zip(_tensors(self.module), _tensors(model), strict=True))
        floats = [(average, new.detach()) for average, new in pairs if average.is_floating_point()]
        others = [(average, new) for average, new in pairs if not average.is_floating_point()]
        averages, newest = [average for average, _ in floats], [new for _, new in floats]
        if self.n_averaged.is_cuda:
            change = torch._foreach_sub(newest, averages)  # pyright: ignore
            torch._foreach_mul_(change, 1.0 / (1.0 + self.share * self.n_averaged))  # pyright: ignore
            torch._foreach_add_(averages, change)  # pyright: ignore
        else:
            torch._foreach_lerp_(averages, newest, newest_weight(float(self.n_averaged), self.share))  # pyright: ignore
        if others:
            torch._foreach_copy_([average for average, _ in others], [new for _, new in others])  # pyright: ignore
        self.n_averaged += 1


def _tensors(model: nn.Module) -> "chain[Tensor]":
    return chain(model.parameters(), model.buffers())
