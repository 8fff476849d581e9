"""Families of schedules that a plan searches: each is given by a few numbers in [0, 1].

They are base shapes (peak, warm-up, decay and its power), multipliers of a base on intervals, or free rates on
intervals.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.law.settings import PLAN
from paceline.model.linalg import tensor
from paceline.shapes import HOLD_THEN_DECAY, Constant, Shape, WarmupStableDecay
from paceline.traces import LearningRateRange, Schedule, Trace


class ScheduleFamily(ABC):
    """Schedules given by a few numbers in [0, 1]."""

    @abstractmethod
    def starts(self) -> list[list[float]]:
        """The points from which the search starts."""

    @abstractmethod
    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps; differentiable."""

    @abstractmethod
    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""


@dataclass(frozen=True, slots=True, eq=False)
class DecayShapes(ScheduleFamily):
    """Warm up, hold, decay to zero with a power. The four numbers are peak, warm-up, decay and power.

    Args:
        bounds: of the peak.
        steps: length of the run.
        warmup: the shortest warm-up that is searched: the law does not describe what a faster one does.
    """

    bounds: LearningRateRange
    steps: int
    warmup: float = PLAN.least_warmup

    def starts(self) -> list[list[float]]:
        """The points from which the search starts."""
        return [[peak, 0.1, decay, 0.4] for peak in (0.9, 0.6) for decay in (0.2, 0.7)]

    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps; differentiable."""
        warmup, decay, power = self._parameters(x)
        s = at / self.steps
        rise = ((s + 1.0 / self.steps) / warmup).clamp(max=1.0)
        left = ((1.0 - s) / decay).clamp(max=1.0)
        return _log_rate(self.bounds, x[0]) + torch.log(rise) + power * torch.log(left)

    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""
        warmup, decay, power = (round(float(value), 4) for value in self._parameters(tensor(x)))
        shape = WarmupStableDecay(warmup=warmup, decay=min(decay, 1.0 - warmup), power=power)
        return Schedule.of(shape, float(self.bounds.from_unit(float(x[0]))), self.steps)

    def _parameters(self, x: Float[Tensor, "size"]) -> tuple[Tensor, Tensor, Tensor]:
        """Warm-up up to 0.2 of the run above the shortest; decay over 5 to 99 % of the rest; power in 0.5 to 2.5."""
        warmup = self.warmup + 0.2 * x[1]
        return warmup, (0.05 + 0.94 * x[2]) * (1.0 - warmup), 0.5 + 2.0 * x[3]


@dataclass(frozen=True, slots=True, eq=False)
class IntervalRates(ScheduleFamily):
    """Multipliers of a base on intervals; with the constant base these are free rates.

    Args:
        bounds: of the multiplier.
        steps: length of the run.
        base: what is multiplied.
        points: change points.
        past: the schedule before the first of them; None for a new run.
    """

    bounds: LearningRateRange
    steps: int
    base: Shape
    points: np.ndarray
    past: Schedule | None

    def starts(self) -> list[list[float]]:
        """The points from which the search starts."""
        count = len(self.points) - 1
        falling = np.linspace(0.9, 0.4, count)
        return [[0.9] * count, [0.6] * count, falling.tolist()]

    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps; differentiable."""
        interval = torch.as_tensor(np.searchsorted(self.points, at.numpy(), side="right") - 1).clamp(0, len(x) - 1)
        factor = np.maximum(self.base.factor(at.numpy(), self.steps), 1e-12)
        return _log_rate(self.bounds, x)[interval] + tensor(np.log(factor))

    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""
        rates = self.bounds.from_unit(x)
        if self.past is None:
            return Schedule(rates, self.points, self.steps, self.base)
        later = Schedule(np.concatenate([rates[:1], rates]), np.concatenate([[0], self.points]), self.steps, self.base)
        return self.past.join(later, int(self.points[0]))


def schedule_family(
    name: str, bounds: LearningRateRange, steps: int, start: Trace | None, intervals: int, warmup: float
) -> ScheduleFamily:
    """The family with this name.

    Args:
        name: "shape", "multipliers" or "free".
        bounds: of the peak, of the multiplier, or of the rate.
        steps: length of the run.
        start: the run so far; None for a new run.
        intervals: for multipliers and free rates.
        warmup: the shortest warm-up of a new run.
    """
    if name == "shape" and start is None:
        return DecayShapes(bounds, steps, min(max(warmup, PLAN.least_warmup), PLAN.most_warmup))
    if name == "shape":
        raise InputError('family="shape" plans a new run, got a run to continue: use "multipliers" or "free"')
    if name not in ("multipliers", "free"):
        raise InputError(f'family must be "shape", "multipliers" or "free", got {name!r}: pick one of these')
    begin = 0 if start is None else start.last_step
    if intervals < 1 or intervals > steps - begin:
        raise InputError(f"intervals must lie in 1..{steps - begin}, got {intervals}: one rate for each")
    points = np.linspace(begin, steps, intervals + 1).round().astype(int)
    base = (None if start is None else start.schedule.tuned_base) or HOLD_THEN_DECAY
    past = None if start is None or begin == 0 else start.schedule
    if name == "multipliers":
        return IntervalRates(bounds, steps, base, points, past)
    free = WarmupStableDecay(warmup=warmup, decay=0.0) if past is None and warmup > 0 else Constant()
    return IntervalRates(bounds, steps, free, points, past)


def _log_rate(bounds: LearningRateRange, x: Tensor) -> Tensor:
    low, high = np.log(bounds.low), np.log(bounds.high)
    return low + (high - low) * x
