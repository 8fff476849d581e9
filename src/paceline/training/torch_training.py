"""A torch model, its optimiser and its data as a training that can be forked.

Everything that decides what comes next is in the state: weights, their average, the optimiser, a gradient scaler, the
random generators and the position in the data. A fork resumed from its checkpoint continues bit for bit on the CPU.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from paceline.errors import TrainingError
from paceline.traces import Schedule
from paceline.training.averaging import SHARE, averaged
from paceline.training.protocol import Observation

Loss = Callable[[nn.Module, Any], Tensor]
Step = Callable[[nn.Module, Optimizer, Any], "Tensor | float"]


class TorchTraining:
    """One training run of a torch model.

    Args:
        model: the model.
        optimizer: any torch optimiser over its parameters; groups keep their ratio of rates to the first group.
        batches: a DataLoader or any iterable; a new pass begins when it ends.
        loss: loss(model, batch) -> scalar.
        evaluate: evaluate(model) -> float, on a fixed set; called for the raw and for the averaged weights. Without it
            the raw value is the mean training loss since the last report, and the averaged one the loss of the averaged
            weights on the latest batches.
        step: step(model, optimizer, batch) -> loss, where one update is more than backward and step: clipping, mixed
            precision, several losses.
        every: steps between observations; by default 200 observations a run.
        average: share of the steps so far that the average of the weights reaches back over; None switches it off.
        scaler: a gradient scaler used by `step`, so that its state is kept.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        batches: Iterable[Any],
        loss: Loss,
        evaluate: "Callable[[nn.Module], float] | None" = None,
        step: "Step | None" = None,
        every: int | None = None,
        average: float | None = SHARE,
        scaler: Any = None,
    ) -> None:
        self.model, self.optimizer, self.batches, self.loss = model, optimizer, batches, loss
        self.evaluate, self.step, self.every, self.scaler = evaluate, step, every, scaler
        self.average = averaged(model, average) if average is not None else None
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        if not rates[0] > 0:
            raise TrainingError(
                f"the optimiser's rates must be positive, got {rates[0]}: they set the ratio of its groups"
            )
        self._ratios = [rate / rates[0] for rate in rates]
        self._done, self._in_pass = 0, 0
        self._iterator: Iterator[Any] | None = None
        self._generators = _generators()
        self._pass_generators = self._generators
        self._recent: deque[Any] = deque(maxlen=4)

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`, yielding raw and averaged values every `every` steps and at `stop`."""
        every = self.every or max(1, schedule.steps // 200)
        self._recent.clear()  # they are not in the state: a run that goes on and one that is resumed must see the same
        if self._done == 0 and self.evaluate is not None:
            with self._randomness():
                value = self._evaluated()
            yield 0, value
        while self._done < stop:
            with self._randomness():
                target = min(stop, (self._done // every + 1) * every)
                total, count = torch.zeros(()), target - self._done
                while self._done < target:
                    total = total + self._train_step(schedule)
                value = self._observed(float(total) / count) if self.evaluate is None else self._evaluated()
            yield self._done, value

    def _train_step(self, schedule: Schedule) -> Tensor:
        """One update at the schedule's rate; the loss before it."""
        rate = schedule(self._done)
        for group, ratio in zip(self.optimizer.param_groups, self._ratios, strict=True):
            group["lr"] = rate * ratio
        self.model.train()
        loss = self._update(self._next_batch())
        self._done += 1
        if self.average is not None:
            self.average.update_parameters(self.model)
        return loss

    def _update(self, batch: Any) -> Tensor:
        if self.step is not None:
            return torch.as_tensor(self.step(self.model, self.optimizer, batch)).detach().cpu().float()
        self.optimizer.zero_grad()
        loss = self.loss(self.model, batch)
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        self.optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        return loss.detach().cpu().float()

    def _evaluated(self) -> dict[str, float]:
        assert self.evaluate is not None
        values: dict[str, float] = {}
        with torch.no_grad():
            for name, model in self._views():
                model.eval()
                values[name] = float(self.evaluate(model))
        return values

    def _observed(self, raw: float) -> dict[str, float]:
        if self.average is None:
            return {"raw": raw}
        self.average.eval()
        with torch.no_grad():
            losses = [float(self.loss(self.average.module, batch)) for batch in self._recent]
        return {"raw": raw, "averaged": float(np.mean(losses))}

    def _views(self) -> list[tuple[str, nn.Module]]:
        """The weights that are evaluated."""
        return [("raw", self.model)] + ([("averaged", self.average.module)] if self.average is not None else [])

    # data

    def _next_batch(self) -> Any:
        """The next batch; a new pass over the data where one ends."""
        for _ in range(2):
            if self._iterator is None:
                self._pass_generators = _generators()
                self._iterator, self._in_pass = iter(self.batches), 0
            try:
                batch = next(self._iterator)
            except StopIteration:
                self._iterator = None
                continue
            self._in_pass += 1
            if self.average is not None and self.evaluate is None:
                self._recent.append(batch)
            return batch
        raise TrainingError("batches gave nothing: expected a DataLoader or an iterable that can be gone through again")

    # state

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next."""
        return {
            "done": self._done,
            "in_pass": self._in_pass if self._iterator is not None else -1,
            "model": self.model.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict() if self.scaler is not None else {},
            "generators": self._generators,
            "pass_generators": self._pass_generators,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a training of the same kind."""
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        self._done, self._iterator = int(state["done"]), None
        self._generators, in_pass = state["pass_generators"], int(state["in_pass"])
        if in_pass >= 0:
            with self._randomness():
                for _ in range(in_pass):
                    self._next_batch()
                if in_pass == 0:
                    self._iterator = iter(self.batches)
        self._generators, self._pass_generators = state["generators"], state["pass_generators"]

    def reseed(self, seed: int) -> None:
        """Start all randomness, and a new pass over the data, from this seed."""
        self._iterator = None
        kept = _generators()
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        np.random.seed(seed % 2**32)  # noqa: NPY002  data loaders of users draw from it
        random.seed(seed)
        self._generators = _generators()
        _restore(kept)

    @contextmanager
    def _randomness(self) -> Generator[None]:
        """The global random state is this fork's own inside, and untouched outside."""
        kept = _generators()
        _restore(self._generators)
        try:
            yield
        finally:
            self._generators = _generators()
            _restore(kept)


def _generators() -> dict[str, Any]:
    """The state of the global random generators, as plain data and tensors."""
    version, words, gauss = random.getstate()
    kind, key, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002  pyright: ignore
    state: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": [
            str(kind),
            torch.tensor(np.asarray(key).astype(np.int64)),
            int(position),
            int(has_gauss),
            float(cached),
        ],  # pyright: ignore
        "python": [version, torch.tensor(words), gauss],
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _restore(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    kind, key, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, key.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
