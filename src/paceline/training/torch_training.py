"""A torch model, its optimiser and its data as a training that can be forked.

Everything that decides what comes next is in the state: weights, their average, the optimiser, a gradient scaler, the
random generators and the position in the data. A fork resumed from its checkpoint continues bit for bit on the CPU.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.training.averaging import SHARE, Average
from paceline.training.passes import Passes
from paceline.training.protocol import Observation
from paceline.training.randomness import Randomness
from paceline.training.rates import ratios_of, set_rates

Loss = Callable[[nn.Module, Any], Tensor]
RECENT = 4  # latest batches that the averaged weights are judged by, where there is no `evaluate`
Step = Callable[[nn.Module, Optimizer, Any], "Tensor | float"]


class TorchTraining:
    """One training run of a torch model.

    Args:
        model: the model.
        optimizer: any torch optimiser over its parameters; groups keep their ratio of rates to the first group.
        batches: a DataLoader or any iterable; a new pass begins when it ends. `DeviceBatches` for data on a GPU.
        loss: loss(model, batch) -> scalar.
        evaluate: evaluate(model) -> a number or a tensor, on a fixed set; called for the raw and for the averaged
            weights. Without it the raw value is the mean training loss since the last report, and the averaged one the
            loss of the averaged weights on the latest batches.
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
        evaluate: "Callable[[nn.Module], float | Tensor] | None" = None,
        step: "Step | None" = None,
        every: int | None = None,
        average: float | None = SHARE,
        scaler: Any = None,
    ) -> None:
        if every is not None and every < 1:
            raise InputError(f"every must be 1 or more, got {every}: it is the steps between observations")
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.evaluate, self.step, self.every, self.scaler = evaluate, step, every, scaler
        self.average = Average(model, average) if average is not None else None
        self.ratios = ratios_of(optimizer)
        _check_trained(model, optimizer)
        self.done = 0
        self.randomness = Randomness()
        self.passes = Passes(batches, self.randomness)
        self._recent: deque[Any] = deque(maxlen=RECENT)

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`, yielding raw and averaged values every `every` steps and at `stop`."""
        self._recent.clear()  # they are not in the state: a run that goes on and one that is resumed must see the same
        if self.done == 0 and self.evaluate is not None:
            with self.randomness.taken():
                value = self._evaluated()
            yield 0, value
        while self.done < stop:
            with self.randomness.taken():
                target = self.next_observed(schedule, stop)
                total, count = 0.0, target - self.done
                while self.done < target:
                    total = total + self._train_step(schedule)
                value = self._observed(float(total) / count) if self.evaluate is None else self._evaluated()
            yield self.done, value

    def _train_step(self, schedule: Schedule) -> Tensor:
        """One update at the schedule's rate; the loss before it."""
        set_rates(self.optimizer, schedule(self.done) * self.ratios)
        batch = self.passes.next()
        if self.average is not None and self.evaluate is None:
            self._recent.append(batch)
        loss = self.update(batch)
        self.done += 1
        return loss

    def update(self, batch: Any) -> Tensor:
        """One update of the weights and of their average, at the rates that are set; the loss before it."""
        self.model.train()
        if self.step is not None:
            loss = torch.as_tensor(self.step(self.model, self.optimizer, batch))
        else:
            self.optimizer.zero_grad()
            loss = self.loss(self.model, batch)
            if not isinstance(loss, Tensor) or loss.numel() != 1:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"loss(model, batch) must return a tensor of one number, got {_described(loss)}")
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            self.optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        if self.average is not None:
            self.average.update(self.model)
        return loss.detach().float()  # left where it is: the host need not wait for it

    def next_observed(self, schedule: Schedule, stop: int) -> int:
        """The step of the next observation: a multiple of `every`, or `stop`.

        Forks are compared by their last observation, so it is never the mean loss of a few batches only: where less
        than half of `every` would be left to `stop`, that is part of it.
        """
        every = self.every or max(1, schedule.steps // 200)
        target = (self.done // every + 1) * every
        least = every / 2 if self.evaluate is None else 0
        return target if stop - target >= least else stop

    @torch.no_grad()
    def _evaluated(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for name, model in self.views():
            model.eval()
            values[name] = float(self.judged(model))
        return values

    def _observed(self, raw: float) -> dict[str, float]:
        if self.average is None:
            return {"raw": raw}
        self.average.eval()
        with torch.no_grad():
            losses = [float(self.loss(self.average.module, batch)) for batch in self._recent]
        return {"raw": raw, "averaged": float(np.mean(losses))}

    def judged(self, model: nn.Module) -> "float | Tensor":
        """What `evaluate` says of a model: one number, left where it is."""
        assert self.evaluate is not None
        value = self.evaluate(model)
        if isinstance(value, Tensor) and value.numel() == 1:
            return value
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            got = _described(value)
            raise InputError(f"evaluate(model) must return one number, got {got}: take its mean, or a sum") from error

    def views(self) -> list[tuple[str, nn.Module]]:
        """The weights that are evaluated."""
        return [("raw", self.model)] + ([("averaged", self.average.module)] if self.average is not None else [])

    # state

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next."""
        return {
            "done": self.done,
            "model": self.model.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict() if self.scaler is not None else {},
            "generators": self.randomness.state,
            **self.passes.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a training of the same kind."""
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        self.done = int(state["done"])
        self.passes.load_state_dict(state)
        self.randomness.state = state["generators"]

    def reseed(self, seed: int) -> None:
        """Start all randomness, and a new pass over the data, from this seed."""
        self.passes.restart()
        self.randomness.reseed(seed)


def _described(value: Any) -> str:
    return f"one of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _check_trained(model: nn.Module, optimizer: Optimizer) -> None:
    """An optimiser of another model would change nothing here."""
    own = {id(parameter) for parameter in model.parameters()}
    if not any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
        raise InputError(
            "expected an optimiser of the model's parameters, got one that holds none of them: build both in the same "
            "function, the optimiser with model.parameters()"
        )
