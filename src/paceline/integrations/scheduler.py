"""Torch schedulers: `PaceLR`, which tunes the rate of one run without forks, and `lambda_lr`, which follows a schedule.

`PaceLR` holds the weights, their average and the optimiser's state; the rules are in `SingleRunController`. It never
changes `optimizer.step`. Torch's own base class does when it is constructed, so its constructor is not called.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from paceline.errors import InputError, TrainingError
from paceline.integrations.loop_checks import UpdateCounter, check_rates
from paceline.integrations.unfinished_run import UnfinishedRunWarning
from paceline.strategy import SingleRunController, WeightAction
from paceline.traces import LearningRateRange, Schedule
from paceline.training import check_single_process, newest_weight, rate_ratios, set_rates

Loss = Tensor | float | Callable[[], Tensor | float]
STATE_KEYS = ("controller", "last_epoch", "ratios", "average", "previous", "saved")


def lambda_lr(optimizer: Optimizer, schedule: Schedule) -> LambdaLR:
    """A torch scheduler that follows a schedule. The optimiser's groups keep the ratio of their rates to the first.

    >>> weight = nn.Parameter(torch.zeros(1))
    >>> scheduler = lambda_lr(torch.optim.SGD([weight], lr=1.0), Schedule.constant(0.1, steps=10))
    >>> scheduler.get_last_lr()
    [0.1]
    """
    factors: list[Callable[[int], float]] = []
    for group, ratio in zip(optimizer.param_groups, rate_ratios(optimizer), strict=True):
        base = float(group.get("initial_lr", group["lr"]))  # what torch multiplies the factor by
        factors.append(partial(_factor, schedule, float(ratio) / base if base else 0.0))
    return LambdaLR(optimizer, factors)


class PaceLR(LRScheduler):
    """Finds and follows a learning rate within one run: a range test, a warm-up and a decay, corrected on the way.

    Call `step` once after each `optimizer.step()`, with

    - the loss of the update: a number or a tensor; or
    - a closure that computes the loss of the same batch at the present weights, without `backward`. It is called at
      the weights before the update and at their running average, up to the middle of the run.

    With the loss alone, the loss of the averaged weights is estimated from the gradients that `backward` left behind,
    as if the loss were quadratic between the two. This costs nothing, but is only as good as the gradients. Clipped
    gradients make the rate too high. If `zero_grad` comes before `step`, there are none, and the peak stays as the
    range test found it. In both cases call `read_gradients` after `backward`, before they are clipped or zeroed.

    The first 5 % of the steps (40 in runs of less than 800, at most a fifth) are the range test. After it weights and
    optimiser go back to their state at construction, so construct it when the weights are in place. It holds two
    copies of the weights, and one with the optimiser's state.

    These are errors: rates that something else has set, `step` forgotten or called more often than the optimiser steps,
    and several processes. A run that ends before its rate has decayed warns when it is over.

    Args:
        optimizer: any torch optimiser; groups keep the ratio of their rates to the first. If groups have an `lr_scale`,
            as those of timm's layer decay, the rate is multiplied by it.
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
        check_single_process("PaceLR")
        self.optimizer, self.model = optimizer, model
        self.controller = SingleRunController(LearningRateRange.of(lr), steps)
        self.base_lrs = [*rate_ratios(optimizer).tolist()]
        self.last_epoch = 0
        self._step_count = 0  # accelerate counts up here when it accumulates gradients
        self._average: list[Tensor] = []
        self._previous = _clone(self._parameters())  # the weights before the next update
        self._products: dict[int, Tensor] = {}  # of gradients read before `step`, by parameter
        self._saved = self._copy()
        self._start_checks()
        self._set_rates()

    @property
    def in_range_test(self) -> bool:
        """Whether the range test is still running. Its weights are given up, so it says nothing about the run."""
        return self.controller.run_start is None

    def get_lr(self) -> list[float | Tensor]:
        """Rates of the next update, group by group."""
        return [self.controller.rate * ratio for ratio in self.base_lrs]

    def read_gradients(self, only: int | None = None) -> None:
        """Read the gradients for the next `step`, as they are now; or only that of the parameter with this number."""
        if not (self._average and self.controller.needs_average_loss):
            return
        parameters = self._parameters()
        for i in range(len(parameters)) if only is None else (only,):
            if parameters[i].grad is not None:
                self._products[i] = self._product(i, parameters[i])

    def step(self, loss: Loss | None = None) -> None:  # pyright: ignore
        """Take the loss of the update just made, or a closure that computes it, and set the rates of the next."""
        loss = _checked(loss)
        if self.last_epoch == self.controller.steps:
            message = f"PaceLR was constructed for {self.controller.steps:,} steps, and they are over"
            advice = "pass as steps= how many updates the loop makes"
            warnings.warn(f"{message}: the rate stays as it is, almost zero; {advice}", stacklevel=2)
        self.last_epoch += 1
        if self.last_epoch > self.controller.steps:
            return
        check_rates(self.optimizer, self._last_lr, self.last_epoch)
        self._updates.check(self._is_without_step)
        self._end.optimizer_steps = self._updates.total_steps
        in_range_test = self.in_range_test
        action = self.controller.observe(*self._losses(loss))
        self._products = {}
        self._apply(action)
        self._set_rates()
        if action is WeightAction.GIVE_UP:
            raise TrainingError(self._failure())
        if action is WeightAction.RESTORE and not in_range_test:
            message = f"training diverged at step {self.last_epoch:,}: the weights go back to the last correction"
            warnings.warn(f"{message}, and the rate goes down", stacklevel=2)
        if self.last_epoch == self.controller.steps:
            self.close()

    def check_rates(self) -> None:
        """Refuse to go on if something else has set the optimiser's rates since the last `step`."""
        if self.last_epoch < self.controller.steps:
            check_rates(self.optimizer, self._last_lr, self.last_epoch + 1)

    def close(self) -> None:
        """End the run before `steps`, on purpose: nothing is checked any more, and no warning comes."""
        self._updates.close()
        self._end.close()

    def _start_checks(self) -> None:
        """Check the loop from now on, if the run is not over. The checks are not part of the state."""
        self._updates, self._end = UpdateCounter(self.optimizer), UnfinishedRunWarning(self, self.controller)
        if self.last_epoch >= self.controller.steps:
            self.close()

    def _is_without_step(self) -> bool:
        """Whether a call without a step is as it should be: weights moved anyway, or gradients are not finite."""
        if not self._previous:
            return True  # nothing to compare with
        parameters = self._parameters()
        if not all(torch.equal(p.detach(), previous) for p, previous in zip(parameters, self._previous, strict=True)):
            return True
        return any(p.grad is not None and not bool(torch.isfinite(p.grad).all()) for p in parameters)

    def _failure(self) -> str:
        low, tries = self.controller.lr_range.low, self.controller.failures_at_lowest
        return (
            f"training diverged at step {self.last_epoch:,}, for the {tries}th time at the lowest rate, {low:g}. "
            "Either the rate is not the cause: look for losses and data that are not finite. Or the bounds are too "
            "high: pass lower ones as lr="
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next: tensors and plain data, independent of what happens later."""
        self._end.saved_at = self.controller.done
        state = {
            "controller": self.controller.to_dict(),
            "last_epoch": self.last_epoch,
            "ratios": self.base_lrs,
            "average": self._average,
            "previous": self._previous,
            "saved": self._saved,
        }
        return deepcopy(state)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state; load model and optimiser as well."""
        self._check_state(state_dict)
        state = deepcopy(state_dict)
        self.close()
        self.controller, self.last_epoch = SingleRunController.from_dict(state["controller"]), state["last_epoch"]
        self.base_lrs, self._saved, self._products = state["ratios"], state["saved"], {}
        self._average, self._previous = self._to_devices(state["average"]), self._to_devices(state["previous"])
        self._set_rates()
        self._start_checks()

    def _check_state(self, state: dict[str, Any]) -> None:
        """Refuse a state of something else, of other settings, or of another model."""
        if not set(STATE_KEYS) <= set(state):
            raise InputError(
                f"expected a state of PaceLR, with {', '.join(STATE_KEYS)}, got {', '.join(map(str, state))}: it is of "
                "another scheduler or an older version of Paceline; finish such a run with that version, or start anew"
            )
        mine, saved = self.controller, SingleRunController.from_dict(state["controller"])
        if (mine.steps, mine.lr_range) != (saved.steps, saved.lr_range):
            raise InputError(
                f"the state is of a run with {_settings(saved)}, and PaceLR was constructed with {_settings(mine)}: "
                "construct it with those of the state, or start a new run without loading it"
            )
        shapes = [[tuple(t.shape) for t in tensors] for tensors in (state["saved"]["weights"], self._parameters())]
        if shapes[0] != shapes[1] or len(state["ratios"]) != len(self.optimizer.param_groups):
            raise InputError(
                f"the state is of another model or optimiser, with {len(shapes[0])} parameters in "
                f"{len(state['ratios'])} groups: got {len(shapes[1])} in {len(self.optimizer.param_groups)}, or of "
                "other shapes. Build the model and the optimiser as for the run that was saved"
            )

    def __getstate__(self) -> dict[str, Any]:
        """All but the checks, which watch one optimiser in one process."""
        self._end.saved_at = self.controller.done
        return {name: part for name, part in vars(self).items() if name not in ("_updates", "_end")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, or what was pickled, with checks of its own."""
        vars(self).update(state)
        self._start_checks()

    # losses

    def _losses(self, loss: Loss) -> tuple[float, float | None]:
        """Losses of the raw and of the averaged weights, both as they were before the update."""
        compare = bool(self._average) and self.controller.needs_average_loss
        self.controller.estimates_average = not callable(loss)
        if not callable(loss):
            value = _number(loss)
            return value, (self._estimate_average_loss(value) if compare else None)
        if not self._previous:
            with torch.no_grad():
                return _number(loss()), None
        return self._loss_at(self._previous, loss), (self._loss_at(self._average, loss) if compare else None)

    def _loss_at(self, weights: list[Tensor], closure: "Callable[[], Tensor | float]") -> float:
        """The loss at other weights, with the same random numbers each time; leaves everything as it was."""
        tensors = [*self._parameters(), *self._buffers()]
        now = _clone(tensors)
        cuda = sorted({t.device.index for t in now if t.is_cuda})
        with torch.no_grad(), torch.random.fork_rng(cuda):  # pyright: ignore[reportUnknownMemberType]
            _assign(tensors, weights)
            try:
                return _number(closure())
            finally:
                _assign(tensors, now)

    def _estimate_average_loss(self, loss: float) -> float | None:
        """loss(averaged) = loss(raw) - g'(raw - averaged) / 2, for a quadratic loss that is flat at the average."""
        products = list(self._products.values())
        if not products:
            products = [self._product(i, p) for i, p in enumerate(self._parameters()) if p.grad is not None]
        if not products:
            return None
        return loss - 0.5 * float(sum(product.to(products[0]) for product in products))

    def _product(self, i: int, parameter: Tensor) -> Tensor:
        """g'(raw - averaged) of one parameter."""
        assert parameter.grad is not None
        return torch.sum(parameter.grad * (self._previous[i] - self._average[i]))

    # weights

    def _apply(self, action: WeightAction) -> None:
        """Save or restore the weights, and update their average."""
        goes_back = action in (WeightAction.RESTORE, WeightAction.GIVE_UP)
        if goes_back:
            self._restore()
        if not self.controller.needs_average:
            self._average = []
        elif not self._average:  # 16-bit floats cannot hold the small changes of an average
            self._average = [t.to(torch.promote_types(t.dtype, torch.float32)) for t in _clone(self._parameters())]
        elif not goes_back:
            weight = newest_weight(self.controller.time - 1)
            for average, newest in zip(self._average, self._parameters(), strict=True):
                average.lerp_(newest.detach().to(average.dtype), weight)
        if action is WeightAction.SAVE:
            self._saved = self._copy()
        needs_previous = self.controller.needs_average or self.in_range_test
        self._previous = _clone(self._parameters()) if needs_previous else []

    def _copy(self) -> dict[str, Any]:
        """Weights, buffers, average and the optimiser's state."""
        return {
            "weights": _clone(self._parameters()),
            "buffers": _clone(self._buffers()),
            "average": _clone(self._average),
            "optimizer": deepcopy(self.optimizer.state_dict()),
        }

    def _restore(self) -> None:
        saved = [*self._saved["weights"], *self._saved["buffers"]]
        _assign([*self._parameters(), *self._buffers()], saved)
        self._average = self._to_devices(_clone(self._saved["average"]))
        self.optimizer.load_state_dict(deepcopy(self._saved["optimizer"]))

    def _set_rates(self) -> None:
        self._last_lr = self.get_lr()
        set_rates(self.optimizer, np.array(self._last_lr))

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _to_devices(self, tensors: list[Tensor]) -> list[Tensor]:
        """Tensors of a state, one per parameter or none, on the devices of the parameters: a file may have others."""
        return [tensor.to(p.device) for tensor, p in zip(tensors, self._parameters(), strict=False)]

    def _buffers(self) -> list[Tensor]:
        return list(self.model.buffers()) if self.model is not None else []


def _checked(loss: Loss | None) -> Loss:
    """Refuse what a scheduler of torch takes: nothing, or the number of an epoch."""
    if loss is None:
        raise InputError("step() needs the loss of the update just made, or a closure: call pace.step(loss)")
    if isinstance(loss, int):
        raise InputError(
            f"step() needs the loss of the update just made, got {loss!r}, a whole number like that of an epoch or a "
            "step: call pace.step(loss) with the loss, and a loss that is whole as a float"
        )
    return loss


def _settings(controller: SingleRunController) -> str:
    bounds = controller.lr_range
    return f"steps={controller.steps} and lr=({bounds.low:g}, {bounds.high:g})"


def _factor(schedule: Schedule, share: float, step: int) -> float:
    return float(schedule(step)) * share


def _number(loss: "Tensor | float") -> float:
    return float(loss.detach()) if isinstance(loss, Tensor) else float(loss)


def _clone(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


@torch.no_grad()
def _assign(targets: list[Tensor], values: list[Tensor]) -> None:
    """Copy values into as many targets as there are values."""
    for target, value in zip(targets, values, strict=False):
        target.copy_(value)
