"""A family of five real tasks: which of two digits an image shows, for 0/1, 2/3, 4/5, 6/7 and 8/9.

A network of 16 hidden units, plain SGD on 8 images a step, shifted by up to a pixel at random so that they cannot be
memorised; the value is the loss on a quarter of the images under all nine shifts (`paceline.problems.digits` does
the same for ten digits). Written out in numpy: a run of 300 steps takes 15 ms. Too low a rate learns nothing, too high
a one kills every unit, and pairs differ in how far they get.

The best known schedule of each pair (`results/digit_pairs.json`) is that of a search on seeds that no method uses:
`python -m benchmarks._digit_pairs` tries 400 schedules, then 12 rounds of 60 around the best. Regret is the mean log
final loss over 20 further seeds, less that of the best known schedule.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paceline import Schedule, Trace
from paceline.strategy.multitask import Space
from paceline.traces import LearningRateRange, Objective
from paceline.training import AVERAGE_SHARE

PAIRS = {"0/1": (0, 1), "2/3": (2, 3), "4/5": (4, 5), "6/7": (6, 7), "8/9": (8, 9)}
SPACE = Space(LearningRateRange(1e-2, 3.0), 300, 5)
WIDTH, BATCH, EVERY = 16, 8, 5
KNOWN = Path(__file__).parent / "results" / "digit_pairs.json"
STORED = Path(__file__).parent.parent / "data" / "digits.npz"  # images and labels, where scikit-learn is not installed
SEARCH_SEEDS, REGRET_SEEDS = 10_000_000, 20_000_000  # first seeds of the search, and of the runs that give regrets


@cache
def images() -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        arrays = np.load(STORED)
        return arrays["images"], arrays["labels"]
    digits = load_digits()
    return digits.data / 16.0, digits.target


def shifted(pixels: np.ndarray) -> np.ndarray:
    padded = np.pad(pixels.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return np.stack([padded[:, i : i + 8, j : j + 8].reshape(len(pixels), 64) for i in range(3) for j in range(3)])


@cache
def parts(pair: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images under nine shifts and their labels, -1 or 1, then all validation images and labels."""
    pixels, digits = images()
    order = np.random.default_rng(0).permutation(len(digits))
    chosen = order[np.isin(digits[order], PAIRS[pair])]
    held_out, train = chosen[: len(chosen) // 4], chosen[len(chosen) // 4 :]
    labels = np.where(digits == PAIRS[pair][1], 1.0, -1.0)
    return (
        shifted(pixels[train]),
        labels[train],
        shifted(pixels[held_out]).reshape(-1, 64),
        np.tile(labels[held_out], 9),
    )


def train(pair: str, schedule: Schedule, seed: int, every: int = EVERY) -> tuple[np.ndarray, np.ndarray]:
    """Steps and validation losses of one run."""
    inputs, labels, held_out, answers = parts(pair)
    rng = np.random.default_rng(seed)
    w, v = rng.uniform(-1, 1, (64, WIDTH)) / 8, rng.uniform(-1, 1, WIDTH) / WIDTH**0.5
    b, c, rates = np.zeros(WIDTH), 0.0, schedule(np.arange(schedule.steps))
    which = rng.integers(9, size=(len(rates), BATCH)), rng.integers(len(labels), size=(len(rates), BATCH))

    def loss() -> float:
        return float(np.logaddexp(0, -answers * (np.maximum(held_out @ w + b, 0) @ v + c)).mean())

    observations = [(0, loss())]
    for t, rate in enumerate(rates):
        x, y = inputs[which[0][t], which[1][t]], labels[which[1][t]]
        hidden = np.maximum(x @ w + b, 0)
        slope = -y / (1 + np.exp(y * (hidden @ v + c))) / BATCH
        back = np.outer(slope, v) * (hidden > 0)
        w, b, v, c = w - rate * x.T @ back, b - rate * back.sum(0), v - rate * slope @ hidden, c - rate * slope.sum()
        if (t + 1) % every == 0:
            observations.append((t + 1, loss()))
    steps, values = np.array(observations).T
    return steps.astype(int), values


class PairTraining:
    """One run of a pair as a training, with the average of its weights; observed before its first step too."""

    def __init__(self, pair: str, seed: int = 0, *, every: int = EVERY) -> None:
        self.pair, self.seed, self.every, self.done = pair, seed, every, 0
        rng = np.random.default_rng(seed)
        w, v = rng.uniform(-1, 1, (64, WIDTH)) / 8, rng.uniform(-1, 1, WIDTH) / WIDTH**0.5
        self.weights = [w, np.zeros(WIDTH), v, np.zeros(1)]
        self.average = list(self.weights)

    def values(self) -> dict[str, float]:
        """The losses of both weights on the images held out."""
        _, _, held_out, answers = parts(self.pair)
        both = {"raw": self.weights, "averaged": self.average}
        return {
            name: float(np.logaddexp(0, -answers * (np.maximum(held_out @ w + b, 0) @ v + c)).mean())
            for name, (w, b, v, c) in both.items()
        }

    def advance(self, schedule: Callable[[Any], Any], stop: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Train on to step `stop`."""
        if self.done == 0:
            yield 0, self.values()
        inputs, labels, _, _ = parts(self.pair)
        for rate in schedule(np.arange(self.done, stop)):
            rng, (w, b, v, c) = np.random.default_rng([self.seed, self.done]), self.weights
            shift, image = rng.integers(9, size=BATCH), rng.integers(len(labels), size=BATCH)
            x, y = inputs[shift, image], labels[image]
            hidden = np.maximum(x @ w + b, 0)
            slope = -y / (1 + np.exp(y * (hidden @ v + c))) / BATCH
            back = np.outer(slope, v) * (hidden > 0)
            steps = (x.T @ back, back.sum(0), slope @ hidden, slope.sum(keepdims=True))
            self.weights = [p - rate * step for p, step in zip(self.weights, steps, strict=True)]
            share = 1 / (1 + AVERAGE_SHARE * self.done)
            self.average = [a + share * (p - a) for a, p in zip(self.average, self.weights, strict=True)]
            self.done += 1
            if self.done % self.every == 0 or self.done == stop:
                yield self.done, self.values()

    def state_dict(self) -> dict[str, Any]:
        """Weights, their average, the step and the seed."""
        named = {name: [torch.tensor(p) for p in w] for name, w in (("model", self.weights), ("avg", self.average))}
        return {"done": self.done, "seed": self.seed, **named}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.done, self.seed = int(state["done"]), int(state["seed"])
        self.weights, self.average = ([p.numpy().copy() for p in state[name]] for name in ("model", "avg"))

    def reseed(self, seed: int) -> None:
        """Draw other noise from now on."""
        self.seed = seed


def observed(pair: str, schedule: Schedule, seed: int, *, name: str) -> Trace:
    steps, values = train(pair, schedule, seed)
    return Trace(steps, values, schedule, task=pair, name=name, objective=Objective(transform="log"))


def final(pair: str, schedule: Schedule, seeds: range) -> float:
    """Mean log of the final loss."""
    return float(np.mean([np.log(train(pair, schedule, seed, schedule.steps)[1][-1]) for seed in seeds]))


@cache
def best_known() -> dict[str, dict[str, list[float] | float]]:
    if not KNOWN.exists():
        raise SystemExit(f"expected the best known schedules in {KNOWN}: python -m benchmarks._digit_pairs finds them")
    return json.loads(KNOWN.read_text())


def expected_log_loss(pair: str, schedule: Schedule) -> float:
    """Mean log of the final loss on the seeds that give regrets."""
    return final(pair, schedule, range(REGRET_SEEDS, REGRET_SEEDS + 20))


def search(pair: str, tried: int = 400, rounds: int = 12, each: int = 60) -> dict[str, list[float] | float]:
    """The best x: the elite of a random search, then closer and closer around it, measured on other seeds."""
    rng = np.random.default_rng([sum(map(ord, pair))])
    x = rng.uniform(size=(tried, SPACE.intervals))
    score = np.array([final(pair, SPACE.schedule(row), range(SEARCH_SEEDS, SEARCH_SEEDS + 3)) for row in x])
    x, spread = x[score.argsort()[:15]], 0.2
    for i in range(rounds):
        first = SEARCH_SEEDS + 1000 * (i + 1)
        near = x[rng.integers(len(x), size=each)] + spread * rng.standard_normal((each, x.shape[1]))
        x = np.concatenate([x, x.mean(0, keepdims=True), np.clip(near, 0, 1)])
        score = np.array([final(pair, SPACE.schedule(row), range(first, first + 5)) for row in x])
        x, spread = x[score.argsort()[:15]], 0.85 * spread
    x = np.concatenate([x, x.mean(0, keepdims=True)])
    first = SEARCH_SEEDS + 100_000
    score = [final(pair, SPACE.schedule(row), range(first, first + 40)) for row in x]
    best = x[int(np.argmin(score))].round(4)
    return {"x": best.tolist(), "log_loss": expected_log_loss(pair, SPACE.schedule(best))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--known", type=Path, default=KNOWN)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        best = dict(zip(PAIRS, pool.map(search, PAIRS), strict=True))
    options.known.write_text(json.dumps(best, indent=1) + "\n")
    print(options.known.read_text())


if __name__ == "__main__":
    main()
