"""A scheduler that torch users know how to use, for one run without forks, and schedules as torch schedulers.

`PaceLR` holds what the recipe in `strategy.single` must not: weights, their average, the optimiser's state. It never
touches `optimizer.step`; torch's own base class patches it on construction, so its constructor is not called.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from paceline.errors import InputError
from paceline.strategy.single import Order, SinglePace
from paceline.traces import LearningRateRange, Schedule
from paceline.training import newest_weight, rate_ratios, set_rates

ENOUGH = 5  # times in a row that training came apart: what is said no more after that


def lambda_lr(optimizer: Optimizer, schedule: Schedule) -> LambdaLR:
    """A torch scheduler that follows a schedule; the optimiser's groups keep the ratio of their rates to the first.

    >>> weight = nn.Parameter(torch.zeros(1))
    >>> scheduler = lambda_lr(torch.optim.SGD([weight], lr=1.0), Schedule.constant(0.1, steps=10))
    >>> scheduler.get_last_lr()
    [0.1]
    """
    rate_ratios(optimizer)
    first = float(optimizer.param_groups[0]["lr"])
    return LambdaLR(optimizer, lambda step: schedule(step) / first)


class PaceLR(LRScheduler):
    """Finds and follows a learning rate within one run: a range test, a warm-up and a decay, corrected on the way.

    Call `step` once after each `optimizer.step()`, with

    - the loss of the update: a number or a tensor; or
    - a closure that computes the loss of the same batch at the present weights, without `backward`. It is called at
      the weights before the update and at their running average, up to half-way through the run.

    With the loss alone, the loss of the averaged weights is estimated from the gradients that `backward` left behind,
    as if the loss were quadratic between the two. That costs nothing, but is as good as the gradients: clipped ones
    make the rate too high, and with none left (`zero_grad` before `step`) the peak of the range test stays as it is.
    Where they are clipped or zeroed, call `note_gradients` between `backward` and that.

    The first 5 % of the steps (40 in runs of less than 800, at most a fifth) are the range test, after which weights
    and optimiser go back to where they began; so create it when the weights are in place. Copies of the weights (two,
    and one with the optimiser's state) are held.

    Args:
        optimizer: any torch optimiser; groups keep the ratio of their rates to the first.
        lr: lower and upper bound of the rate.
        steps: updates in all, the range test included.
        model: whose buffers (statistics of normalisation layers) are to go back with the weights.

    >>> model, draw = nn.Linear(4, 1), torch.Generator().manual_seed(0)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> pace = PaceLR(optimizer, lr=(1e-4, 1.0), steps=300)
    >>> for _ in range(300):
    ...     batch = torch.randn(16, 4, generator=draw)
    ...     loss = (model(batch).squeeze() - batch.sum(dim=1)).square().mean()
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    ...     pace.step(loss)
    >>> bool(loss < 0.01)
    True
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr: "tuple[float, float] | LearningRateRange",
        steps: int,
        model: nn.Module | None = None,
    ) -> None:
        self.optimizer, self.model = optimizer, model
        self.pace = SinglePace(LearningRateRange.of(lr), steps)
        self.base_lrs = [*rate_ratios(optimizer).tolist()]
        self.last_epoch = 0
        self._average: list[Tensor] = []
        self._before = _clones(self._parameters())
        self._dots: dict[int, Tensor] = {}
        self._in_a_row = 0  # how often training came apart, for what is said only: no part of the state
        self._kept = self._copy()
        self._set_rates()

    def get_lr(self) -> list[float | Tensor]:
        """Rates of the next update, group by group."""
        return [self.pace.rate * ratio for ratio in self.base_lrs]

    def note_gradients(self, only: int | None = None) -> None:
        """Read the gradients as they are now for the next `step`; or that of one parameter, by its place among all."""
        if not (self._average and self.pace.wants_average):
            return
        parameters = self._parameters()
        for i in range(len(parameters)) if only is None else (only,):
            if parameters[i].grad is not None:
                self._dots[i] = self._product(i, parameters[i])

    def step(self, loss: "Tensor | float | Callable[[], Tensor | float] | None" = None) -> None:  # pyright: ignore
        """Take the loss of the update just made, or a closure that computes it, and set the rates of the next."""
        if loss is None:
            raise InputError("step() needs the loss of the update just made, or a closure: call pace.step(loss)")
        if self.last_epoch == self.pace.steps:
            message = f"PaceLR was made for {self.pace.steps:,} steps and they are over: the rate stays where it ended"
            warnings.warn(message, stacklevel=2)
        self.last_epoch += 1
        if self.last_epoch > self.pace.steps:
            return
        running = self.pace.began is not None
        order = self.pace.observe(*self._losses(loss))
        self._dots = {}
        self._in_a_row = self._in_a_row + 1 if order is Order.RESTORE and running else 0
        if 0 < self._in_a_row <= ENOUGH:
            at = f"training came apart at step {self.last_epoch:,}"
            message = f"{at}: weights go back to the last check, the rate down"
            hopeless = (
                f", for the {ENOUGH}th time in a row: not for its rate, check the loss and the data at a small one"
            )
            warnings.warn(message + hopeless * (self._in_a_row == ENOUGH), stacklevel=2)
        self._obey(order)
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next: tensors and plain data, independent of what happens later."""
        named = {"average": self._average, "before": self._before, "kept": self._kept}
        return deepcopy({"pace": self.pace.to_dict(), "last_epoch": self.last_epoch, "ratios": self.base_lrs, **named})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state; load model and optimiser as well."""
        state = deepcopy(state_dict)
        self.pace, self.last_epoch = SinglePace.from_dict(state["pace"]), state["last_epoch"]
        self.base_lrs, self._kept, self._dots = state["ratios"], state["kept"], {}
        self._average, self._before = self._beside(state["average"]), self._beside(state["before"])
        self._set_rates()

    # what the recipe is told

    def _losses(self, loss: "Tensor | float | Callable[[], Tensor | float]") -> tuple[float, float | None]:
        """Losses of the raw and of the averaged weights, both as they were before the update."""
        compare = bool(self._average) and self.pace.wants_average
        self.pace.by_gradients = not callable(loss)
        if not callable(loss):
            value = _number(loss)
            return value, (self._estimated(value) if compare else None)
        if not self._before:
            with torch.no_grad():
                return _number(loss()), None
        return self._at(self._before, loss), (self._at(self._average, loss) if compare else None)

    def _at(self, weights: list[Tensor], closure: "Callable[[], Tensor | float]") -> float:
        """The loss at other weights, with the same random numbers each time; leaves everything as it was."""
        inside = [*self._parameters(), *self._buffers()]
        now = _clones(inside)
        cuda = sorted({t.device.index for t in now if t.is_cuda})
        with torch.no_grad(), torch.random.fork_rng(cuda):  # pyright: ignore[reportUnknownMemberType]
            _assign(inside, weights)
            try:
                return _number(closure())
            finally:
                _assign(inside, now)

    def _estimated(self, loss: float) -> float | None:
        """loss(averaged) = loss(raw) - g'(raw - averaged) / 2, where the loss is quadratic and flat at the average."""
        dots = list(self._dots.values())
        if not dots:
            dots = [self._product(i, p) for i, p in enumerate(self._parameters()) if p.grad is not None]
        return loss - 0.5 * float(sum(dot.to(dots[0]) for dot in dots)) if dots else None

    def _product(self, i: int, parameter: Tensor) -> Tensor:
        """g'(raw - averaged) of one parameter."""
        assert parameter.grad is not None
        return torch.sum(parameter.grad * (self._before[i] - self._average[i]))

    # what it says

    def _obey(self, order: Order) -> None:
        if order is Order.RESTORE:
            self._put_back()
        if not self.pace.averaging:
            self._average = []
        elif not self._average:  # short floats cannot hold the small moves of an average
            self._average = [t.to(torch.promote_types(t.dtype, torch.float32)) for t in _clones(self._parameters())]
        elif order is not Order.RESTORE:
            weight = newest_weight(self.pace.time - 1)
            for average, newest in zip(self._average, self._parameters(), strict=True):
                average.lerp_(newest.detach().to(average.dtype), weight)
        if order is Order.KEEP:
            self._kept = self._copy()
        self._before = _clones(self._parameters()) if self.pace.averaging or self.pace.began is None else []

    def _copy(self) -> dict[str, Any]:
        """Weights, buffers, average and the optimiser's state."""
        return {
            "weights": _clones(self._parameters()),
            "buffers": _clones(self._buffers()),
            "average": _clones(self._average),
            "optimizer": deepcopy(self.optimizer.state_dict()),
        }

    def _put_back(self) -> None:
        _assign([*self._parameters(), *self._buffers()], [*self._kept["weights"], *self._kept["buffers"]])
        self._average = self._beside(_clones(self._kept["average"]))
        self.optimizer.load_state_dict(deepcopy(self._kept["optimizer"]))

    def _set_rates(self) -> None:
        self._last_lr = self.get_lr()
        set_rates(self.optimizer, np.array(self._last_lr))

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _beside(self, tensors: list[Tensor]) -> list[Tensor]:
        """Tensors of a state, one a parameter or none, where the parameters are: a file may have put them elsewhere."""
        return [tensor.to(p.device) for tensor, p in zip(tensors, self._parameters(), strict=False)]

    def _buffers(self) -> list[Tensor]:
        return list(self.model.buffers()) if self.model is not None else []


def _number(loss: "Tensor | float") -> float:
    return float(loss.detach()) if isinstance(loss, Tensor) else float(loss)


def _clones(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


@torch.no_grad()
def _assign(targets: list[Tensor], values: list[Tensor]) -> None:
    """Copy values into the first of the targets."""
    for target, value in zip(targets, values, strict=False):
        target.copy_(value)
