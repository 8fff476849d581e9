"""Small scripts of the kinds that people have, each as a plain loop and as a training for `tune`.

Plain loops evaluate once an epoch, or ten times a run. One evaluation takes about 0.4 % of a run, as in pytorch's mnist
and nanoGPT. Data is made up: labels and letters have a rule, so that there is something to learn.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from tempfile import mkdtemp
from typing import Any

import lightning.pytorch as pl
import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from transformers import Trainer, TrainingArguments

from paceline.integrations import PaceLR, lightning
from paceline.integrations import transformers as hugging_face
from paceline.training import TorchTraining, Training

LR = (1e-4, 1e-1)
PEAK = 2e-3  # of the plain loops, whose rate is constant
EVALUATIONS = 10  # of a plain run without epochs
cross_entropy = nn.functional.cross_entropy


@dataclass(frozen=True, slots=True)
class Script:
    """A script.

    Args:
        steps: of one run.
        run: run(paced) trains once, in a plain loop or with `PaceLR` in it.
        training: builds one run for `tune`.
    """

    steps: int
    run: Callable[[bool], None]
    training: Callable[[], Training]


@dataclass(frozen=True, slots=True)
class Loop:
    """What a loop in plain PyTorch needs."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Any
    loss: Callable[[nn.Module, Any], Tensor]
    evaluate: Callable[[nn.Module], float]
    clip: float | None = None

    def run(self, steps: int, *, evaluate_every: int, paced: bool) -> None:
        """Train once."""
        pace = PaceLR(self.optimizer, LR, steps, self.model) if paced else None
        done = 0
        while done < steps:
            for batch in self.batches:
                loss = self.loss(self.model, batch)
                self.optimizer.zero_grad()
                loss.backward()
                if self.clip is not None:
                    if pace is not None:
                        pace.read_gradients()
                    nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
                self.optimizer.step()
                if pace is not None:
                    pace.step(loss)
                done += 1
                if done % evaluate_every == 0:
                    self.model.eval()
                    with torch.no_grad():
                        self.evaluate(self.model)
                    self.model.train()
                if done == steps:
                    break

    def training(self) -> TorchTraining:
        """The same as a training."""
        return TorchTraining(
            self.model,
            self.optimizer,
            batches=self.batches,
            loss=self.loss,
            evaluate=self.evaluate,
            step=self._clipped_step if self.clip is not None else None,
        )

    def _clipped_step(self, model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> Tensor:
        assert self.clip is not None
        loss = self.loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), self.clip)
        optimizer.step()
        return loss


# -- images, from a map-style data set with workers


@cache
def images(count: int) -> tuple[Tensor, Tensor]:
    """Random images with the labels that a random network gives them."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(count, 1, 16, 16, generator=draw)
    filters = torch.randn(10, 1, 5, 5, generator=draw)
    return x, nn.functional.conv2d(x, filters, stride=5).amax(dim=(2, 3)).argmax(1)


class Shifted(Dataset[tuple[Tensor, Tensor]]):
    """Images, each shifted at random, one by one as data sets of files give them."""

    def __init__(self, count: int) -> None:
        self.images, self.labels = images(count)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        down, across = torch.randint(-1, 2, (2,)).tolist()
        return self.images[i].roll((down, across), (1, 2)), self.labels[i]


def convolutions(width: int) -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * width, 10),
    )  # fmt: skip


def image_loop(device: str, width: int, workers: int) -> Loop:
    """Images from a loader with workers."""
    model = convolutions(width).to(device)
    x, y = images(8_500)
    held_out = x[8_000:].to(device), y[8_000:].to(device)

    def loss(net: nn.Module, batch: Any) -> Tensor:
        x, y = (tensor.to(device, non_blocking=True) for tensor in batch)
        return cross_entropy(net(x), y)

    return Loop(
        model,
        torch.optim.AdamW(model.parameters(), lr=PEAK),
        DataLoader(Shifted(8_000), 64, shuffle=True, num_workers=workers, drop_last=True),
        loss,
        lambda net: float(loss(net, held_out)),
    )


# -- text, as a stream and from a table in memory


@cache
def text(count: int) -> Tensor:
    """Letters of which each depends on the two before it."""
    draw = torch.Generator().manual_seed(0)
    follow = torch.randn(32 * 32, 32, generator=draw).mul(2).softmax(1)
    noise, letters = torch.rand(count, generator=draw), [0, 1]
    sums = follow.cumsum(1)
    for i in range(2, count):
        row = sums[32 * letters[-2] + letters[-1]]
        letters.append(min(31, int(torch.searchsorted(row, noise[i]))))
    return torch.tensor(letters)


class Stream(IterableDataset[Tensor]):
    """Windows of a text in their order, as they are read from a file."""

    def __init__(self, tokens: Tensor, length: int) -> None:
        self.tokens, self.length = tokens, length

    def __iter__(self) -> Iterator[Tensor]:
        for start in range(0, len(self.tokens) - self.length, self.length):
            yield torch.tensor(self.tokens[start : start + self.length + 1].tolist())


class Windows:
    """Batches of windows that begin anywhere in a text, without end."""

    def __init__(self, tokens: Tensor, length: int, size: int, device: str) -> None:
        self.tokens, self.length, self.size, self.device = tokens, length, size, device

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            starts = torch.randint(len(self.tokens) - self.length - 1, (self.size, 1))
            yield self.tokens[starts + torch.arange(self.length + 1)].to(self.device)


class Letters(nn.Module):
    """A small transformer over letters."""

    def __init__(self, width: int, blocks: int, length: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(32, width), nn.Parameter(torch.zeros(length, width))
        layer = partial(nn.TransformerEncoderLayer, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList([layer(width, max(2, width // 64), 4 * width) for _ in range(blocks)])
        self.out = nn.Linear(width, 32)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.place[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, src_mask=self.mask, is_causal=True)
        return self.out(x)


def next_letter(net: nn.Module, rows: Tensor) -> Tensor:
    """The loss of the next letter."""
    return cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def mean_loss(rows: list[Tensor], net: nn.Module) -> float:
    """The mean loss on fixed batches."""
    return sum(float(next_letter(net, batch)) for batch in rows) / len(rows)


def text_loop(device: str, width: int, blocks: int, length: int, *, stream: bool) -> Loop:
    """Letters, read as a stream, or drawn from memory by a loop that clips gradients."""
    tokens = text(60_000)
    train, last = tokens[:50_000], Windows(tokens[50_000:], length, 32, device)
    with torch.random.fork_rng():
        held_out = [next(iter(last)) for _ in range(2)]
    model = Letters(width, blocks, length).to(device)
    batches = DataLoader(Stream(train, length), 16) if stream else Windows(train, length, 16, device)
    return Loop(
        model, torch.optim.AdamW(model.parameters(), lr=PEAK), batches, next_letter, partial(mean_loss, held_out),
        clip=None if stream else 1.0,
    )  # fmt: skip


def of_loop(make: Callable[[], Loop], steps: int) -> Script:
    """A script in plain PyTorch."""

    def run(paced: bool) -> None:
        make().run(steps, evaluate_every=steps // EVALUATIONS, paced=paced)

    return Script(steps, run, lambda: make().training())


# -- Lightning and the Hugging Face Trainer


class ImageModule(pl.LightningModule):
    """The network on images as a LightningModule."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = convolutions(width)

    def training_step(self, batch: Any) -> Tensor:
        return cross_entropy(self.network(batch[0]), batch[1])

    def validation_step(self, batch: Any) -> Tensor:
        loss = self.training_step(batch)
        self.log("val_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=PEAK)


def on_lightning(width: int, epochs: int) -> Script:
    """A LightningModule with loaders."""

    def loaders() -> tuple[Any, Any]:
        x, y = images(8_500)
        return (
            DataLoader(TensorDataset(x[:8_000], y[:8_000]), 64, shuffle=True, drop_last=True),
            DataLoader(TensorDataset(x[8_000:], y[8_000:]), 500),
        )

    def run(paced: bool) -> None:
        quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        callbacks = [lightning.PaceCallback(LR)] if paced else []
        trainer = pl.Trainer(
            accelerator="cpu", max_epochs=epochs, callbacks=callbacks, enable_model_summary=False, **quiet
        )
        trainer.fit(ImageModule(width), *loaders())

    make = partial(ImageModule, width)
    return Script(epochs * 125, run, lightning.lightning_training(make, loaders, accelerator="cpu"))


def on_trainer(width: int, steps: int) -> Script:
    """A GPT-2 under the Hugging Face Trainer."""

    def trainer() -> Trainer:
        rows = text(60_000)[: 60_000 // 32 * 32].view(-1, 32)
        sets = [[{"input_ids": row, "labels": row} for row in part] for part in (rows[:1700], rows[-64:])]
        config = transformers.GPT2Config(
            vocab_size=32, n_positions=32, n_embd=width, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
        )
        arguments = TrainingArguments(
            mkdtemp(), max_steps=steps, per_device_train_batch_size=16, learning_rate=PEAK, report_to=[],
            lr_scheduler_type="constant", eval_strategy="steps", eval_steps=steps // EVALUATIONS, save_strategy="no",
            logging_steps=steps // EVALUATIONS, disable_tqdm=True, use_cpu=True, per_device_eval_batch_size=32,
        )  # fmt: skip
        made = Trainer(transformers.GPT2LMHeadModel(config), arguments, train_dataset=sets[0], eval_dataset=sets[1])
        made.pop_callback(transformers.PrinterCallback)
        return made

    def run(paced: bool) -> None:
        made = trainer()
        if paced:
            made.add_callback(hugging_face.PaceCallback(LR))
        made.train()

    return Script(steps, run, hugging_face.trainer_training(trainer))


def scripts(device: str) -> dict[str, Script]:
    """All scripts for a device, by name."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    transformers.logging.set_verbosity_error()
    if device != "cpu":
        return {
            "loader with workers": of_loop(partial(image_loop, device, 128, 4), 2000),
            "own loop": of_loop(partial(text_loop, device, 512, 8, 256, stream=False), 1000),
        }
    return {
        "loader with workers": of_loop(partial(image_loop, device, 16, 2), 600),
        "iterable data set": of_loop(partial(text_loop, device, 48, 2, 32, stream=True), 400),
        "own loop": of_loop(partial(text_loop, device, 64, 2, 32, stream=False), 400),
        "Lightning": on_lightning(12, 5),
        "Hugging Face": on_trainer(48, 400),
    }
