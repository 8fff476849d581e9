"""CIFAR-10 on a device, and the residual networks that were made for it (He et al. 2016, section 4.2)."""

import importlib.util
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._data import folder

MEAN, SPREAD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@cache
def cifar10(device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images (standardised, channels last in memory) and labels, then test ones."""
    path = stored()
    arrays = _packed(path) if path.is_file() else _published(path)
    x, y, x_test, y_test = (torch.from_numpy(array).to(device) for array in arrays)
    return standardised(x), y.long(), standardised(x_test), y_test.long()


def stored() -> Path:
    """Where CIFAR-10 lies: the folder that its authors publish for C programs, or a module that unpacks it."""
    for name in ("cifar-10-batches-bin", "cifar10.py"):
        if (folder() / name).exists():
            return folder() / name
    sys.exit(f"expected CIFAR-10's folder cifar-10-batches-bin (its binary version) in {folder()}: put it there")


def _published(path: Path) -> list[np.ndarray]:
    """Five batches to train on and one to test: a byte for the class, then planes of red, green and blue."""
    arrays = list[np.ndarray]()
    for names in ([f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]):
        rows = np.concatenate([np.fromfile(path / name, np.uint8).reshape(-1, 1 + 3 * 32 * 32) for name in names])
        arrays += [rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy(), rows[:, 0].copy()]
    return arrays


def _packed(path: Path) -> tuple[np.ndarray, ...]:
    spec = importlib.util.spec_from_file_location("cifar10_parts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def standardised(images: Tensor) -> Tensor:
    """Bytes (n, height, width, 3) as standardised numbers (n, 3, height, width)."""
    mean, spread = (torch.tensor(x, device=images.device) * 255 for x in (MEAN, SPREAD))
    return ((images.float() - mean) / spread).permute(0, 3, 1, 2)


class Block(nn.Module):
    """Two convolutions with a way around them; where sizes differ, it skips pixels and pads channels."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.stride, self.padding = outside // inside, (outside - inside) // 2
        self.first = nn.Conv2d(inside, outside, 3, self.stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)])

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[1](self.second(torch.relu(self.norms[0](self.first(x)))))
        if self.padding:
            x = nn.functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.padding, self.padding))
        return torch.relu(x + y)


def resnet(depth: int, seed: int) -> nn.Sequential:
    """ResNet-20, -56, ...: three stages of (depth - 2) / 6 blocks with 16, 32 and 64 channels."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sizes = [16] * ((depth - 2) // 6 + 1) + [32] * ((depth - 2) // 6) + [64] * ((depth - 2) // 6)
        blocks = [Block(a, b) for a, b in pairwise(sizes)]
        stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
