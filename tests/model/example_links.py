"""A user's own link."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from paceline.model import Link, link_names


class Creeping(Link):
    """phi(f_1) log(1 + phi(f_2) t) / log(base)."""

    name: ClassVar[str] = "creeping"

    def __init__(self, base: float = 2.0) -> None:
        self.base = base

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        return torch.log1p(softplus(f) * elapsed) / torch.log(torch.tensor(self.base, dtype=torch.float64))


def unregister(*names: str) -> None:
    """What a new process has not registered."""
    for name in names:
        link_names._registered.pop(name, None)
