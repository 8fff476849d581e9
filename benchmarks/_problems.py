"""The problems that tuners are compared on: two noisy quadratics, a digits network and a character model.

Within a seed every method starts from the same weights, sees the same data and gets the same bounds; the bounds are
shifted at random per seed so that no grid lands on the optimum. Values are the loss on a fixed set not trained on
(the loss itself on the quadratics).
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._data import folder
from paceline.problems import Quadratic, QuadraticTraining, digits_training
from paceline.training import TorchTraining, Training


class Problem(NamedTuple):
    """A training, its length, the middle of its bounds (two decades either way) and how many seeds are reported.

    A problem that is not `counted` is shown beside the others and left out of the means.
    """

    name: str
    make: Callable[[int], Training]
    steps: int
    middle: float
    seeds: int
    network: bool
    counted: bool = True

    def bounds(self, seed: int) -> tuple[float, float]:
        """Four decades, shifted by up to a quarter of one."""
        shift = np.random.default_rng([seed, 77]).uniform(-0.25, 0.25)
        return self.middle * 10 ** (shift - 2), self.middle * 10 ** (shift + 2)


def quadratic(noise: float, dims: int = 500) -> Callable[[int], QuadraticTraining]:
    """Curvatures 1, 1/2, 1/3, ... (Wu et al. 2018).

    With 500 of them the best peak lies inside the stable rates; with 1,000 and little noise it lies on their edge.
    """
    return lambda seed: QuadraticTraining(Quadratic(noise, dims), seed)


class Text:
    """Random windows of a text without end, drawn with torch's generator."""

    def __init__(self, text: Tensor, length: int, size: int) -> None:
        self.text, self.length, self.size = text, length, size

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            yield windows(self.text, torch.randint(len(self.text) - self.length, (self.size,)), self.length)


def windows(text: Tensor, starts: Tensor, length: int) -> Tensor:
    """Rows of `length` + 1 characters, the last one only to be predicted."""
    return text[starts[:, None] + torch.arange(length + 1)]


class Block(nn.Module):
    """Causal attention and a small network, each on normalised input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.mix = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.attend(self.before_attention(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.network(self.before_network(x))


class CharacterModel(nn.Module):
    """A transformer over characters."""

    def __init__(self, characters: int, width: int = 48, blocks: int = 2, length: int = 32) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, 2) for _ in range(blocks)])
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, characters, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.blocks(self.embed(x) + self.place.weight[: x.shape[1]]))


@cache
def shakespeare() -> tuple[Tensor, Tensor, int]:
    """Tiny Shakespeare as numbers: training text, validation text (the last tenth), distinct characters."""
    text = (folder() / "tinyshakespeare.txt").read_text()
    numbers_of = {c: i for i, c in enumerate(sorted(set(text)))}
    numbers = torch.tensor([numbers_of[c] for c in text])
    border = int(0.9 * len(numbers))
    return numbers[:border], numbers[border:], len(numbers_of)


def character_training(seed: int = 0, *, every: int = 10) -> TorchTraining:
    """A character model on Tiny Shakespeare with AdamW; its value is the loss on 128 windows of validation text."""
    text, validation, characters = shakespeare()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = CharacterModel(characters)
    starts = torch.linspace(0, len(validation) - 33, 128).long()
    held_out = windows(validation, starts, 32)

    def loss(net: nn.Module, rows: Tensor) -> Tensor:
        return nn.functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    training = TorchTraining(
        model,
        torch.optim.AdamW(model.parameters(), weight_decay=0.1),
        batches=Text(text, 32, 16),
        loss=loss,
        evaluate=lambda net: float(loss(net, held_out)),
        every=every,
    )
    training.reseed(seed)
    return training


PROBLEMS = {
    p.name: p
    for p in (
        Problem("quadratic 1", quadratic(1.0), 2000, 0.1, 8, network=False),
        Problem("quadratic 0.1", quadratic(0.1), 2000, 0.1, 8, network=False),
        Problem("edge", quadratic(0.1, 1000), 2000, 0.1, 8, network=False, counted=False),
        Problem("digits", lambda s: digits_training(s, every=10), 1000, 3e-3, 8, network=True),
        Problem("characters", character_training, 1000, 3e-3, 5, network=True),
    )
}
