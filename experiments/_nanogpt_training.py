"""The language model of nanoGPT on Tiny Shakespeare, in plain torch, as a training that can be tuned.

Written from the published description (github.com/karpathy/nanoGPT, `config/train_shakespeare_char.py`, MIT): a
pre-norm transformer over characters without biases, weights drawn with deviation 0.02 (less before a residual sum),
output and input embeddings shared, AdamW with decay on matrices alone, gradients clipped at norm 1. The first nine
tenths of the text are trained on; the last tenth is held out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._problems import shakespeare
from paceline.shapes import Recorded
from paceline.training import DeviceBatches, TorchTraining

CLIP, DECAY, BETAS = 1.0, 0.1, (0.9, 0.99)
WARMUP, FINAL = 100, 0.1  # of the script's schedule: steps, and the last rate as a share of the peak
SCRIPT_PEAK = 1e-3
PARTS = {"all": (0.0, 1.0), "first half": (0.0, 0.5), "second half": (0.5, 1.0)}  # of the held-out text


@dataclass(frozen=True, slots=True)
class Setting:
    """A published setting: the size of the model, its training, and what the source reports for it.

    Args:
        layers, heads, width, context, dropout: of the model.
        batch: windows per update.
        steps: updates of a run.
        every: updates between observations.
        windows: windows of the held-out text that an observation is the mean loss of; None takes all of the text.
        published: the best validation loss that the source reports; None for a setting of our own.
        characters: of the training text that are used, from its beginning; None uses all.
    """

    layers: int
    heads: int
    width: int
    context: int
    dropout: float
    batch: int
    steps: int
    every: int
    windows: int | None
    published: float | None
    characters: int | None = None


SETTINGS = {
    "gpu": Setting(6, 6, 384, 256, 0.2, 64, 5000, 50, None, 1.4697),
    "cpu": Setting(4, 4, 128, 64, 0.0, 12, 2000, 50, 240, 1.88),
    "small": Setting(4, 4, 128, 64, 0.2, 12, 2500, 50, 240, None, characters=50_000),
}


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.heads, self.dropout = setting.heads, setting.dropout
        self.attend = nn.Linear(setting.width, 3 * setting.width, bias=False)
        self.mix = nn.Linear(setting.width, setting.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.attend(x).view(rows, length, 3, self.heads, width // self.heads).transpose(1, 3)
        query, key, value = split.unbind(2)
        dropout = self.dropout if self.training else 0.0
        attended = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        return self.mix(attended.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    """Attention and a small network, each added to its normalised input."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        width = setting.width
        self.before_attention, self.before_network = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attention, self.dropout = Attention(setting), nn.Dropout(setting.dropout)
        self.widen, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.before_attention(x)))
        return x + self.dropout(self.narrow(nn.functional.gelu(self.widen(self.before_network(x)))))


class LanguageModel(nn.Module):
    """A transformer over characters; its output layer is its embedding."""

    def __init__(self, setting: Setting, characters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, setting.width)
        self.place = nn.Embedding(setting.context, setting.width)
        self.dropout = nn.Dropout(setting.dropout)
        self.blocks = nn.ModuleList(Block(setting) for _ in range(setting.layers))
        self.last = nn.LayerNorm(setting.width, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                before_sum = name.endswith(("mix.weight", "narrow.weight"))
                nn.init.normal_(weight, 0.0, 0.02 / math.sqrt(2 * setting.layers) if before_sum else 0.02)

    def forward(self, x: Tensor) -> Tensor:
        h = self.dropout(self.embed(x) + self.place.weight[: x.shape[1]])
        for block in self.blocks:
            h = block(h)
        return nn.functional.linear(self.last(h), self.embed.weight)


def losses(model: nn.Module, rows: Tensor) -> Tensor:
    """The loss of each predicted character, (rows, context); in bf16 on a GPU."""
    with torch.autocast(rows.device.type, torch.bfloat16, enabled=rows.is_cuda):
        scores = model(rows[:, :-1])
    return nn.functional.cross_entropy(scores.float().transpose(1, 2), rows[:, 1:], reduction="none")


@cache
def compiled_losses() -> Callable[[nn.Module, Tensor], Tensor]:
    """The same, compiled for a GPU; all models share the code."""
    return torch.compile(losses, dynamic=False)


def losses_on(device: torch.device) -> Callable[[nn.Module, Tensor], Tensor]:
    """`losses`, compiled where the device is a GPU."""
    return compiled_losses() if device.type == "cuda" else losses


class HeldOut:
    """The loss on windows of the held-out text; every character but the first is predicted once.

    A call returns the mean loss of one part. Each call also keeps the losses of all parts in `latest`, so that a run
    whose decisions do not depend on the values is evaluated once for all of them.

    Args:
        part: one of `PARTS`.
        setting: its context is the length of a window.
        device: where the windows are.
        windows: how many are used, evenly spaced; None uses all.
    """

    def __init__(self, part: str, setting: Setting, device: torch.device, windows: int | None = None) -> None:
        _, text, _ = shakespeare()
        length = setting.context
        last = len(text) - length - 1
        starts = torch.arange(0, last, length)
        if windows is None:
            repeated = int(starts[-1]) + length - last  # characters that the window before the last predicts too
            starts = torch.cat([starts, torch.tensor([last])])
        else:
            starts, repeated = starts[torch.linspace(0, len(starts) - 1, windows).long()], 0
        self.part, self.latest, self.losses = part, dict[str, Tensor](), losses_on(device)
        self.rows = text[starts[:, None] + torch.arange(length + 1)].to(device)
        new = torch.ones(len(starts), length)
        new[-1, :repeated] = 0.0
        places = (torch.arange(len(starts)) + 0.5) / len(starts)
        within = [((places >= low) & (places < high)).float()[:, None] * new for low, high in PARTS.values()]
        self.weights = torch.stack([counted / counted.sum() for counted in within]).to(device)

    def __call__(self, model: nn.Module) -> Tensor:
        """The mean loss of the predicted characters."""
        means = (self.weights * self.losses(model, self.rows)).sum(dim=(1, 2))
        self.latest = dict(zip(PARTS, means, strict=True))
        return self.latest[self.part]


def training_batches(setting: Setting, device: torch.device) -> DeviceBatches:
    """Random windows of the training text."""
    text, _, _ = shakespeare()
    text, offsets = text[: setting.characters].to(device), torch.arange(setting.context + 1, device=device)
    starts = torch.arange(len(text) - setting.context, device=device)
    return DeviceBatches(starts, size=setting.batch, transform=lambda batch: text[batch[0][:, None] + offsets])


def language_model(setting: Setting, seed: int) -> LanguageModel:
    """The untrained model of a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LanguageModel(setting, shakespeare()[2])


def decay_groups(model: nn.Module) -> list[dict[str, Any]]:
    """The model's parameters: matrices decay, vectors do not."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]


def make_training(
    setting: Setting, seed: int, device: torch.device, evaluate: Callable[[nn.Module], Tensor] | None
) -> TorchTraining:
    """One run, judged by `evaluate`; None leaves that to the caller."""
    model, loss_of = language_model(setting, seed).to(device), losses_on(device)
    is_gpu = device.type == "cuda"

    def loss(net: nn.Module, rows: Tensor) -> Tensor:
        return loss_of(net, rows).mean()

    def step(net: nn.Module, optimizer: torch.optim.Optimizer, rows: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = loss(net, rows)
        value.backward()
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        return value

    training = TorchTraining(
        model,
        torch.optim.AdamW(decay_groups(model), lr=SCRIPT_PEAK, betas=BETAS, fused=is_gpu),
        batches=training_batches(setting, device),
        loss=loss,
        step=step,
        evaluate=evaluate,
        every=setting.every,
    )
    training.reseed(seed)
    return training


def script_shape(setting: Setting) -> Recorded:
    """The script's own schedule as a factor of its peak: a linear warm-up, then half a cosine to a tenth."""
    steps = np.arange(0, setting.steps, 5)
    rise = (steps + 1) / (WARMUP + 1)
    share = (steps - WARMUP) / (setting.steps - WARMUP)
    fall = FINAL + (1 - FINAL) * 0.5 * (1 + np.cos(np.pi * np.clip(share, 0, 1)))
    return Recorded(tuple(steps.tolist()), tuple(np.where(steps < WARMUP, rise, fall).tolist()))
