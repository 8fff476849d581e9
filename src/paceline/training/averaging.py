"""The average of the weights over the last share of the steps so far.

weight of the newest at step t: 1 / (1 + share t)   (a window of `share` of the run so far; 15 % by default)

Judging a run by its averaged weights sees through gradient noise, so that a fork does not look better just because it
lowered its rate (docs/design.md).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

SHARE = 0.15


def newest_weight(count: float, share: float = SHARE) -> float:
    """The weight of the newest of the weights, after `count` updates of the average."""
    return 1.0 / (1.0 + share * count)


def averaged(model: nn.Module, share: float = SHARE) -> AveragedModel:
    """A running average of a model's parameters and buffers."""
    return AveragedModel(model, avg_fn=_towards(share), use_buffers=True)


def _towards(share: float) -> Callable[[Tensor, Tensor, "Tensor | int"], Tensor]:
    def update(average: Tensor, newest: Tensor, count: "Tensor | int") -> Tensor:
        if not average.is_floating_point():
            return newest
        return torch.lerp(average, newest, newest_weight(float(count), share))

    return update
