"""One run without forks: with nothing to compare with, three rules stand in for the comparison.

A range test finds the peak: the rate sweeps over the bounds in the first 5 % of the steps, then the weights are put
back. The rest is a warm-up and a decay to zero at that peak. On the way rho = E / D corrects it: E, how much lower the
loss of the averaged weights is than that of the raw ones, is what noise costs and a decay will bring back; D, what the
averaged loss gains per factor e of time, is progress. Much noise for little progress asks for a lower rate. Where
training diverges it goes back to the last check, lower. The state is plain data; who holds the weights obeys `Order`s.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from math import isfinite, log
from typing import Any

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError
from paceline.traces import LearningRateRange, Shape, WarmupStableDecay

SWEEP = 0.05
"""Share of the steps that the range test takes."""
BASE: Shape = WarmupStableDecay(warmup=0.05, decay=0.7)
SMOOTH = 0.45
"""Width in decades over which the losses of the range test are averaged."""
CHECKS = 12
WINDOW = 0.7
"""A check looks back to this share of the time so far."""
BACK = 0.3
"""How far to go down, in decades, after a divergence."""
PAIRS = 400
"""Losses of the averaged weights per factor e of time; more say little more, and each may cost a forward pass."""


class Order(Enum):
    """What to do with the weights before the next update."""

    GO_ON = "go on"
    KEEP = "keep a copy"
    RESTORE = "go back to the copy"


def sweep_steps(steps: int) -> int:
    """Length of the range test."""
    return max(2, round(SWEEP * steps))


def worse(first: float, factor: float) -> float:
    """The loss that counts as `factor` times the first one; also where losses are negative."""
    return first + (factor - 1.0) * abs(first)


def peak_of_sweep(log10_rates: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> float:
    """log10 of the smallest rate that brings 90 % of the largest drop of the smoothed loss.

    `losses[i]` was seen before the update at `log10_rates[i]`. Losses are cut off at four times the first.
    """
    first = float(np.mean(losses[log10_rates < log10_rates[0] + SMOOTH]))
    clipped = np.minimum(np.nan_to_num(losses, nan=np.inf), worse(first, 4.0))
    near = np.abs(log10_rates[:, None] - log10_rates[None, :]) <= SMOOTH / 2
    smooth = (near @ clipped) / near.sum(axis=1)
    reached = smooth <= first - 0.9 * (first - smooth.min())
    return float(log10_rates[int(np.argmax(reached))])


def correction(pairs: Sequence[tuple[int, float, float]]) -> float:
    """Decades to move by, from (time, loss of the raw weights, of the averaged ones) over the latest stretch.

    clip(0.1 ln(0.4 / rho), -0.2, 0.15) with rho = E / D, E = mean(raw - averaged), D = -d averaged / d ln(time).
    """
    if len(pairs) < 4:
        return 0.0
    time, raw, averaged = np.array(pairs).T
    clock = np.log(time) - np.mean(np.log(time))
    noise, progress = float(np.mean(raw - averaged)), -float(clock @ averaged / (clock @ clock))
    if noise <= 0:
        return 0.15
    if progress <= 0:
        return -0.2
    return float(np.clip(0.1 * log(0.4 * progress / noise), -0.2, 0.15))


@dataclass(slots=True)
class SinglePace:
    """The rate of each step of one run, told the losses as they come.

    Args:
        lr_range: bounds of the rate.
        steps: length of the run, the range test included.

    The other fields are its state: updates `done`, the step at which the run proper `began`, log10 of the `peak`, the
    highest it may go, the `first` loss, the checks to come, the `latest` losses (all of them during the range test), and
    `pairs` (time, raw, averaged) for the next check.
    """

    lr_range: LearningRateRange
    steps: int
    done: int = 0
    began: int | None = None
    peak: float = 0.0
    ceiling: float = np.inf
    first: float = np.nan
    checks: list[int] = field(default_factory=list[int])
    latest: list[float] = field(default_factory=list[float])
    pairs: list[tuple[int, float, float]] = field(default_factory=list[tuple[int, float, float]])

    def __post_init__(self) -> None:
        if self.steps < 20:
            raise InputError(f"steps must be at least 20, got {self.steps}: the range test takes 5 % of them")

    @property
    def rate(self) -> float:
        """Rate of the next update; after the last step, that of the last."""
        return self.rate_at(self.done)

    def rate_at(self, step: int) -> float:
        """Rate of the update number `step`, as things stand."""
        if self.began is None:
            return float(self.lr_range.from_unit(step / (sweep_steps(self.steps) - 1)))
        length = self.steps - self.began
        at = np.array(float(min(step - self.began, length - 1)))
        return float(10.0**self.peak * BASE.factor(at, length))

    @property
    def time(self) -> int:
        """Updates of the run proper."""
        return 0 if self.began is None else self.done - self.began

    @property
    def tracking(self) -> bool:
        """Whether losses of the averaged weights will be wanted: the weights before an update must then be known."""
        return self.began is None or bool(self.checks)

    @property
    def wants_average(self) -> bool:
        """Whether the loss of the next update should come with that of the averaged weights."""
        return self.tracking and self.time > 0 and self.time % max(1, self.time // PAIRS) == 0

    def observe(self, loss: float, averaged: float | None = None) -> Order:
        """Take the loss of one more update, at the weights before it, and say what to do with the weights now."""
        began, self.done = self.began, self.done + 1
        self.latest.append(loss if isfinite(loss) else np.inf)
        if began is None:
            return self._sweep()
        if averaged is not None and isfinite(averaged):
            self.pairs.append((self.done - 1 - began, loss, averaged))
        del self.latest[: -max(4, (self.steps - began) // 100)]
        if not isfinite(loss) or (len(self.latest) >= 4 and np.mean(self.latest) > worse(self.first, 1.5)):
            return self._go_back()
        if self.checks and self.done >= self.checks[0]:
            return self._correct(self.done - began)
        return Order.GO_ON

    def _sweep(self) -> Order:
        """End the range test when it is through, or when training has come apart and it can teach nothing more."""
        total, last = sweep_steps(self.steps), self.latest[-2:]
        apart = not isfinite(last[-1]) or (len(self.latest) > total // 4 and min(last) > worse(self.latest[0], 4.0))
        if self.done < total and not apart:
            return Order.GO_ON
        rates = np.log10([self.rate_at(step) for step in range(self.done)])
        early = rates < rates[0] + SMOOTH
        self.first = float(np.mean(np.array(self.latest)[early]))
        self.peak, self.began = peak_of_sweep(rates, np.array(self.latest)), self.done
        length = self.steps - self.done
        self.checks = sorted({self.done + round(x * length) for x in np.geomspace(0.06, 0.5, CHECKS)})
        self.latest = []
        return Order.RESTORE

    def _correct(self, time: int) -> Order:
        """Move the peak by what the pairs say."""
        window = [pair for pair in self.pairs if pair[0] >= time * WINDOW]
        self.peak = min(self.peak + correction(window), self.ceiling)
        self.pairs = window
        self.checks = self.checks[1:]
        return Order.KEEP

    def _go_back(self) -> Order:
        """Lower, and never above that again."""
        self.peak -= BACK
        self.ceiling = self.peak
        self.latest, self.pairs = [], []
        return Order.RESTORE

    def to_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "SinglePace":
        """The controller that `to_dict` described."""
        return cls(**{**data, "lr_range": LearningRateRange(**data["lr_range"])})
