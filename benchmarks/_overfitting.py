"""Problems that overfit: the loss on held-out data falls, then rises while the training loss goes on falling.

Each has two sets of held-out data. Runs are judged on the first; the second shows what the choice is worth on data that
chose nothing.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks._problems import CharacterModel, shakespeare, windows
from paceline.problems.digits import load_digits
from paceline.training import TorchTraining

CONTEXT, BATCH = 32, 16
OBSERVATIONS = 60  # of a run


class OverfittingProblem(NamedTuple):
    """A problem: make(seed) is the training, and test(seed) judges a model on the second set of held-out data.

    Bounds are four decades around `middle`.
    """

    name: str
    make: Callable[[int], TorchTraining]
    test: Callable[[nn.Module], float]
    steps: int
    middle: float


def character_windows(part: int, parts: int = 2, count: int = 256) -> Tensor:
    """Windows of a part of the validation text."""
    _, text, _ = shakespeare()
    size = len(text) // parts
    text = text[part * size : (part + 1) * size]
    return windows(text, torch.linspace(0, len(text) - CONTEXT - 1, count).long(), CONTEXT)


def character_loss(net: nn.Module, rows: Tensor) -> Tensor:
    """Cross-entropy of the predicted characters."""
    return nn.functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


class Windows:
    """Random windows of a short text, drawn with torch's generator."""

    def __init__(self, text: Tensor) -> None:
        self.text = text

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            yield windows(self.text, torch.randint(len(self.text) - CONTEXT, (BATCH,)), CONTEXT)


@cache
def pretrained(seed: int, width: int, steps: int = 1500) -> dict[str, Tensor]:
    """Weights of a character model after a run on the first half of the text, read backwards."""
    text, _, characters = shakespeare()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = CharacterModel(characters, width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for step, rows in zip(range(steps), Windows(text[: len(text) // 2].flip(0)), strict=False):
            for group in optimizer.param_groups:
                group["lr"] = 3e-3 * (1 - step / steps)
            optimizer.zero_grad()
            character_loss(model, rows).backward()
            optimizer.step()
    return model.state_dict()


def short_text(characters: int, width: int, steps: int, *, fine_tuned: bool = False) -> Callable[[int], TorchTraining]:
    """A character model on so many characters of text; its value is the loss on the first half of the validation text.

    Args:
        characters: of the training text.
        width: of the model.
        steps: of a run.
        fine_tuned: whether the model was trained on other text before.
    """

    def make(seed: int) -> TorchTraining:
        text, _, distinct = shakespeare()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = CharacterModel(distinct, width)
            if fine_tuned:
                model.load_state_dict(pretrained(seed, width))
            start = int(torch.randint(len(text) - characters, ()))
        held_out = character_windows(0)
        training = TorchTraining(
            model,
            torch.optim.AdamW(model.parameters(), weight_decay=0.1),
            batches=Windows(text[start : start + characters]),
            loss=character_loss,
            evaluate=lambda net: float(character_loss(net, held_out)),
            every=max(1, steps // OBSERVATIONS),
        )
        training.reseed(seed)
        return training

    return make


def noisy_digits(images: int, wrong: float, width: int, steps: int) -> Callable[[int], TorchTraining]:
    """A network on a few digits, some of them with wrong labels; its value is the loss on half of the held-out ones.

    Args:
        images: how many are trained on.
        wrong: share of them with a wrong label.
        width: of the hidden layer.
        steps: of a run.
    """

    def make(seed: int) -> TorchTraining:
        x, y, held_out, answers = load_digits()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
            rows = torch.randperm(len(y))[:images]
            labels = torch.where(torch.rand(images) < wrong, torch.randint(10, (images,)), y[rows])
        loss_of = nn.CrossEntropyLoss()
        x_judged, y_judged = held_out[:225], answers[:225]
        data = torch.utils.data.TensorDataset(x[rows], labels)
        training = TorchTraining(
            model,
            torch.optim.Adam(model.parameters()),
            batches=torch.utils.data.DataLoader(data, 32, shuffle=True),
            loss=lambda net, pair: loss_of(net(pair[0]), pair[1]),
            evaluate=lambda net: float(loss_of(net(x_judged), y_judged)),
            every=max(1, steps // OBSERVATIONS),
        )
        training.reseed(seed)
        return training

    return make


def test_text(model: nn.Module) -> float:
    """The loss on the second half of the validation text."""
    return float(character_loss(model, character_windows(1)))


def test_digits(model: nn.Module) -> float:
    """The loss on the other half of the held-out digits, under all shifts."""
    _, _, held_out, answers = load_digits()
    return float(nn.functional.cross_entropy(model(held_out[225:]), answers[225:]))


def _text(name: str, characters: int, width: int, steps: int, *, fine_tuned: bool = False) -> OverfittingProblem:
    make = short_text(characters, width, steps, fine_tuned=fine_tuned)
    return OverfittingProblem(name, make, test_text, steps, 3e-3)


PROBLEMS = {
    p.name: p
    for p in (
        _text("short text", 30_000, 48, 1000),
        _text("fine-tuning", 20_000, 48, 400, fine_tuned=True),
        OverfittingProblem("noisy digits", noisy_digits(400, 0.15, 256, 1000), test_digits, 1000, 3e-3),
    )
}
# settings of decisions were chosen on these, and on seeds from 9,000
EXPLORED = {
    p.name: p
    for p in (
        _text("shorter text", 12_000, 32, 800),
        _text("fine-tuning on less", 8_000, 32, 500, fine_tuned=True),
        OverfittingProblem("noisier digits", noisy_digits(250, 0.3, 128, 800), test_digits, 800, 3e-3),
        OverfittingProblem("few digits", noisy_digits(120, 0.0, 128, 800), test_digits, 800, 3e-3),
    )
}
