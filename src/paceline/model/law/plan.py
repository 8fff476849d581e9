"""Planning: the schedule whose forecast ends best, by gradient through the law.

A family says which schedules are looked at: base shapes (peak, warm-up, decay, its power), multipliers of a base on
intervals, or free rates on intervals. What is maximised is a quantile of the final value over the draws of the law's
parameters. The law knows nothing of rates at which training comes apart, so a plan never goes above the rates that were
seen to work for a good part of a run, nor there faster than was seen.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.forecast import Forecast
from paceline.model.law.state import Pieces
from paceline.model.linalg import tensor
from paceline.shapes import HOLD_THEN_DECAY, Constant, Shape, WarmupStableDecay
from paceline.traces import LearningRateRange, Schedule, Trace

if TYPE_CHECKING:
    from paceline.model.law.model import LawModel

PIECES = 200
BEYOND = 1.25  # times the highest rate seen to work, at most
LASTING = 0.5  # of the longest run: shorter ones do not show that a rate works


@dataclass(frozen=True, slots=True, eq=False)
class PlannedSchedule:
    """A schedule and what is expected of it.

    Args:
        schedule: from step 0 to the end; the past of a run that goes on is part of it.
        forecast: of values to be recorded along it.
        family: where it was looked for.
        quantile: the order of the quantile that was maximised, on the scale of improvement.
        caveats: what the runs behind it could not tell.
    """

    schedule: Schedule
    forecast: Forecast
    family: str
    quantile: float
    caveats: tuple[str, ...]


class Family(ABC):
    """Schedules given by a few numbers in [0, 1]."""

    @abstractmethod
    def starts(self) -> list[list[float]]:
        """Where to begin looking."""

    @abstractmethod
    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps, differentiable."""

    @abstractmethod
    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes(Family):
    """Warm up, hold, decay to zero with a power; four numbers: peak, warm-up, decay and power.

    `warmup` is the shortest that is looked at: what a faster rise does to training is not in the law.
    """

    bounds: LearningRateRange
    steps: int
    warmup: float = 0.01

    def starts(self) -> list[list[float]]:
        """Where to begin looking."""
        return [[peak, 0.1, decay, 0.4] for peak in (0.9, 0.6) for decay in (0.2, 0.7)]

    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps, differentiable."""
        warmup, decay, power = self._shape(x)
        s = at / self.steps
        rise = ((s + 1.0 / self.steps) / warmup).clamp(max=1.0)
        left = ((1.0 - s) / decay).clamp(max=1.0)
        return _log_rate(self.bounds, x[0]) + torch.log(rise) + power * torch.log(left)

    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""
        warmup, decay, power = (round(float(value), 4) for value in self._shape(tensor(x)))
        shape = WarmupStableDecay(warmup=warmup, decay=min(decay, 1.0 - warmup), power=power)
        return Schedule.of(shape, float(self.bounds.from_unit(float(x[0]))), self.steps)

    def _shape(self, x: Float[Tensor, "size"]) -> tuple[Tensor, Tensor, Tensor]:
        """Warm-up up to a fifth longer than the shortest, decay in 5 to 99 % of what is left, power in 0.5 to 2.5."""
        warmup = self.warmup + 0.2 * x[1]
        return warmup, (0.05 + 0.94 * x[2]) * (1.0 - warmup), 0.5 + 2.0 * x[3]


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers(Family):
    """Multipliers of a base on intervals; on the constant base these are free rates."""

    bounds: LearningRateRange
    steps: int
    base: Shape
    points: np.ndarray
    past: Schedule | None

    def starts(self) -> list[list[float]]:
        """Where to begin looking."""
        count = len(self.points) - 1
        falling = np.linspace(0.9, 0.4, count)
        return [[0.9] * count, [0.6] * count, falling.tolist()]

    def log_rates(self, x: Float[Tensor, "size"], at: Float[Tensor, "pieces"]) -> Float[Tensor, "pieces"]:
        """Log of the rate at steps, differentiable."""
        interval = torch.as_tensor(np.searchsorted(self.points, at.numpy(), side="right") - 1).clamp(0, len(x) - 1)
        shape = np.maximum(self.base.factor(at.numpy(), self.steps), 1e-12)
        return _log_rate(self.bounds, x)[interval] + tensor(np.log(shape))

    def schedule(self, x: Float[np.ndarray, "size"]) -> Schedule:
        """The schedule itself, from step 0."""
        rates = self.bounds.from_unit(x)
        if self.past is None:
            return Schedule(rates, self.points, self.steps, self.base)
        ahead = Schedule(np.concatenate([rates[:1], rates]), np.concatenate([[0], self.points]), self.steps, self.base)
        return self.past.join(ahead, int(self.points[0]))


def plan(
    model: "LawModel",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    start: Trace | None = None,
    family: str = "shape",
    quantile: float = 0.5,
    task: str | None = None,
    intervals: int = 10,
) -> PlannedSchedule:
    """The schedule of a family that maximises a quantile of the final value.

    Args:
        model: the fitted law.
        steps: length of the run.
        lr: bounds of the rate (of the peak, of the multiplier).
        start: a run to go on with; by default a new one.
        family: "shape" (a new run only), "multipliers" of the base that the run has (of the default base for a new
            one), or "free" rates on intervals, after the shortest warm-up that was seen where it is a new run.
        quantile: on the scale of improvement: 0.5 the median, lower is more careful.
        task: the task of a new run, where the model has tasks.
        intervals: how many, for multipliers and free rates.
    """
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    if not 0 < quantile < 1:
        raise InputError(f"quantile must lie in (0, 1), got {quantile}: 0.5 is the median, lower is more careful")
    begin = 0 if start is None else start.last_step
    if steps <= begin:
        raise InputError(
            f"steps must lie after step {begin:,}, the current step of the run, got {steps:,}: plan a longer run"
        )
    looked = _family(family, stable_range(model, lr), steps, start, intervals, shortest_warmup(model.traces))
    number = model.task_number(task if start is None else start.task)
    objective = final_loss(model, looked, steps, start, number, 1 - quantile)
    best: np.ndarray | None = None
    value = np.inf
    for first in looked.starts():
        found: Any = minimize(
            objective,
            np.array(first),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * len(first),
            options={"maxiter": 40},
        )
        if best is None or found.fun < value:
            best, value = np.asarray(found.x, dtype=float), float(found.fun)
    assert best is not None
    schedule = looked.schedule(best)
    forecast = model.forecast(schedule, start=start, task=task)
    return PlannedSchedule(schedule, forecast, family, quantile, model.caveats)


def final_loss(
    model: "LawModel", family: Family, steps: int, start: Trace | None, task: int, order: float
) -> "Callable[[Float[np.ndarray, 'size']], tuple[float, Float[np.ndarray, 'size']]]":
    """The quantile of this order of the log of the final loss, and its gradient, in the numbers of a family."""
    past, edges = _past(start), np.linspace(0 if start is None else start.last_step, steps, PIECES + 1)
    middle, lengths = tensor((edges[1:] + edges[:-1]) / 2 - 0.5), tensor(np.diff(edges))
    done = torch.tensor([PIECES + len(past.rates)])

    def value(x: Float[np.ndarray, "size"]) -> tuple[float, Float[np.ndarray, "size"]]:
        at = tensor(x).requires_grad_()
        rates = torch.exp(family.log_rates(at, middle))
        whole = torch.cat([past.rates, rates])
        ahead = Pieces(whole, torch.cat([past.lengths, lengths]), done, rates[-1:])
        final = torch.quantile(torch.log(model.law(ahead, task)[:, 0]), order)
        return float(final.detach()), torch.autograd.grad(final, at)[0].numpy()

    return value


def _family(
    name: str, bounds: LearningRateRange, steps: int, start: Trace | None, intervals: int, warmup: float
) -> Family:
    if name == "shape" and start is None:
        return Shapes(bounds, steps, min(max(warmup, 0.01), 0.5))
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
        return Multipliers(bounds, steps, base, points, past)
    rates = WarmupStableDecay(warmup=warmup, decay=0.0) if past is None and warmup > 0 else Constant()
    return Multipliers(bounds, steps, rates, points, past)


def stable_range(model: "LawModel", lr: "tuple[float, float] | LearningRateRange") -> LearningRateRange:
    """The bounds, cut off above the rates that were seen to work."""
    bounds, highest = LearningRateRange.of(lr), highest_stable_rate(model.traces)
    high = min(bounds.high, BEYOND * highest)
    if high <= bounds.low:
        raise InputError(
            f"the lowest rate to plan with is {bounds.low:g}, these runs worked at rates up to "
            f"{highest:g}: lower the bound, or fit to runs at higher rates"
        )
    return LearningRateRange(bounds.low, high)


def highest_stable_rate(traces: Sequence[Trace]) -> float:
    """The highest rate of a run that worked; where none did, a decade below the lowest of their peaks."""
    worked = stable_runs(traces)
    return max(map(_peak, worked)) if worked else min(map(_peak, traces)) / 10


def shortest_warmup(traces: Sequence[Trace]) -> float:
    """The smallest share of its length in which a run that worked has come near its peak, if that is a high one."""
    worked = stable_runs(traces)
    high = [trace for trace in worked if _peak(trace) > max(map(_peak, worked)) / 2]
    return min((rise(trace.schedule, trace.last_step) for trace in high), default=0.0)


def rise(schedule: Schedule, stop: int) -> float:
    """The share of a schedule after which the rate has reached nine tenths of its highest before `stop`."""
    at = np.unique(np.linspace(0, max(stop - 1, 0), 2000).astype(int))
    rates = schedule(at)
    return float(at[np.argmax(rates >= 0.9 * rates.max())]) / schedule.steps


def stable_runs(traces: Sequence[Trace]) -> list[Trace]:
    """The runs that lasted, did not fail and ended better than they began.

    A fork that was dropped early says nothing about a long run at its rate: many rates look good at first.
    """
    longest = max(trace.last_step for trace in traces)
    return [trace for trace in traces if trace.last_step >= LASTING * longest and _improved(trace)]


def _improved(trace: Trace) -> bool:
    values = trace.path()[1]
    return not trace.failed and trace.objective.sign * float(values[-1] - values[0]) >= 0


def _peak(trace: Trace) -> float:
    return float(Pieces.of(trace.schedule, np.array([max(trace.last_step, 1)])).rates.max())


def _past(start: Trace | None) -> Pieces:
    if start is None or start.last_step == 0:
        empty = torch.zeros(0, dtype=torch.float64)
        return Pieces(empty, empty, torch.zeros(0, dtype=torch.long), empty)
    return Pieces.of(start.schedule, np.array([start.last_step]))


def _log_rate(bounds: LearningRateRange, x: Tensor) -> Tensor:
    low, high = np.log(bounds.low), np.log(bounds.high)
    return low + (high - low) * x
