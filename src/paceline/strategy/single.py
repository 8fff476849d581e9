"""One run without forks: with nothing to compare with, three rules stand in for the comparison.

A range test finds a peak: the rate sweeps over the bounds in the first 5 % of the steps (in short runs in the first 40,
if these are not more than a fifth), then the weights are put back.
The rest is a warm-up and a decay to zero at that peak, corrected on the way by rho = E / D. E, how much lower the loss
of averaged weights is than that of the raw ones, is what noise costs and the decay will bring back; D, what the
averaged loss gains per factor e of time, is progress. At the peaks that end best rho grows with time, alike on
networks and quadratics (docs/research.md), and that line is the target. Where training comes apart it goes back to the
last check, lower. The state is plain data; who holds the weights follows `Order`s.
"""

from dataclasses import asdict, dataclass, field
from enum import Enum
from math import isfinite, log, log10
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError
from paceline.shapes import Shape, WarmupStableDecay
from paceline.traces import LearningRateRange

SWEEP, LEAST = 0.05, 20
"""Share of the steps that the range test takes; the fewest that it can be a share of."""
READABLE, MOST = 40, 0.2
"""Steps below which noise hides what a rate does; the share of a short run that they may be."""
SMOOTH = 0.45
"""Width in decades over which its losses are averaged."""
BELOW, CEILING = 0.75, 0.15
"""Decades that the first peak, and any later one, stays below the rate that undid all progress in the range test."""
BASE: Shape = WarmupStableDecay(warmup=0.05, decay=0.7)
CHECKS, WINDOW = 12, 0.7
"""How often the peak is corrected; a check looks back to this share of the time so far."""
BACK = 0.1
"""How far to go down, in decades, when training first comes apart; twice as far each time after that."""
PAIRS = 400
"""Losses of the averaged weights per factor e of time; more say little more, and each may cost a forward pass."""


class Target(NamedTuple):
    """rho = growth * (share of the run done) at a good peak. `drift` D is what E lacks, as the average lags behind."""

    drift: float
    growth: float


MEASURED = Target(0.14, 1.8)
BY_GRADIENTS = Target(0.07, 2.2)
"""Where E is half the gradient times the distance: half of the lag is in it, and somewhat more noise."""


class Order(Enum):
    """What to do with the weights before the next update."""

    GO_ON = "go on"
    KEEP = "keep a copy"
    RESTORE = "go back to the copy"


def sweep_steps(steps: int) -> int:
    """Length of the range test in a run of so many steps."""
    if steps < LEAST:
        raise InputError(f"steps must be at least {LEAST}, got {steps}: the range test takes up to a fifth of them")
    return round(max(SWEEP * steps, min(READABLE, MOST * steps)))


def worse(first: float, factor: float) -> float:
    """The loss that counts as `factor` times the first one; also where losses are negative."""
    return first + (factor - 1.0) * abs(first)


def first_loss(log10_rates: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> float:
    """The loss that a range test began at: the mean over its lowest rates."""
    return float(np.mean(losses[log10_rates < log10_rates[0] + SMOOTH]))


def peaks_of_sweep(log10_rates: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """log10 of the peak to begin at and of the highest to try, from a range test.

    The first is the smallest rate that brings 70 % of the largest drop, but well below the rate at which all of it was
    lost again. `losses[i]` was seen before the update at `log10_rates[i]`; they are cut off at four times the first and
    smoothed.
    """
    first = first_loss(log10_rates, losses)
    if not isfinite(first):  # nothing to read: as careful as the bounds allow
        return float(log10_rates[0]), np.inf
    clipped = np.minimum(np.nan_to_num(losses, nan=np.inf), worse(first, 4.0))
    near = np.abs(log10_rates[:, None] - log10_rates[None, :]) <= SMOOTH / 2
    smooth = (near @ clipped) / near.sum(axis=1)
    lowest = int(np.argmin(smooth))
    reached = log10_rates[int(np.argmax(smooth <= first - 0.7 * (first - smooth[lowest])))]
    lost = log10_rates[lowest:][smooth[lowest:] > first]
    apart = lost[0] if lost.size else (np.inf if isfinite(losses[-1]) else log10_rates[-1])
    return float(max(log10_rates[0], min(reached, apart - BELOW))), float(apart - CEILING)


def check_steps(length: int) -> list[int]:
    """When the peak is corrected in a run of `length` steps: log-spaced from 6 to 50 % of it."""
    return sorted({max(1, round(share * length)) for share in np.geomspace(0.06, 0.5, CHECKS)})


def progress(steps: Float[np.ndarray, "n"], averaged: Float[np.ndarray, "n"]) -> float:
    """D = -d averaged / d ln(step), by least squares."""
    clock = np.log(steps) - np.mean(np.log(steps))
    return -float(clock @ averaged / (clock @ clock))


def correction(noise: float, gain: float, share: float, target: Target = MEASURED) -> float:
    """Decades to move the peak by: clip(0.1 ln(target / rho), -0.2, 0.15), rho = noise / gain (E / D) without drift."""
    if gain <= 0:
        return -0.2
    rho = noise / gain + target.drift
    return float(np.clip(0.1 * log((target.drift + target.growth * share) / max(rho, 1e-9)), -0.2, 0.15))


@dataclass(slots=True)
class SinglePace:
    """The rate of each step of one run, told the losses as they come.

    Args:
        lr_range: bounds of the rate.
        steps: length of the run, the range test included.
        by_gradients: the losses of averaged weights are not measured but estimated by gradients.

    The other fields are its state: updates `done`, the step at which the run proper `began`, log10 of the `peak` and of
    the highest it may go, how far to go `back`, the `first` loss, the checks to come, the `latest` losses (all of them
    during the range test), and `pairs` (time, raw, averaged) for the next check.
    """

    lr_range: LearningRateRange
    steps: int
    by_gradients: bool = False
    done: int = 0
    began: int | None = None
    peak: float = 0.0
    ceiling: float = np.inf
    back: float = BACK
    first: float = np.nan
    checks: list[int] = field(default_factory=list[int])
    latest: list[float] = field(default_factory=list[float])
    pairs: list[tuple[int, float, float]] = field(default_factory=list[tuple[int, float, float]])

    def __post_init__(self) -> None:
        sweep_steps(self.steps)  # refuses too few

    @property
    def rate(self) -> float:
        """Rate of the next update; after the last step, that of the last."""
        return self.rate_at(self.done)

    def rate_at(self, step: int) -> float:
        """Rate of the update number `step`, as things stand."""
        if self.began is None:
            return float(self.lr_range.from_unit(step / (sweep_steps(self.steps) - 1)))
        length = self.steps - self.began
        at = np.array([float(min(step - self.began, length - 1))])
        return 10.0**self.peak * float(BASE.factor(at, length)[0])

    @property
    def time(self) -> int:
        """Updates of the run proper."""
        return 0 if self.began is None else self.done - self.began

    @property
    def averaging(self) -> bool:
        """Whether losses of averaged weights are still to come: up to the last check."""
        return self.began is not None and bool(self.checks)

    @property
    def wants_average(self) -> bool:
        """Whether the loss of the next update should come with that of the averaged weights."""
        return self.averaging and self.time > 0 and self.time % max(1, self.time // PAIRS) == 0

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
            return self._correct()
        return Order.GO_ON

    def _sweep(self) -> Order:
        """End the range test when it is through, or when training has come apart and it can teach nothing more."""
        total, last = sweep_steps(self.steps), self.latest[-2:]
        apart = not isfinite(last[-1]) or (len(self.latest) > total // 4 and min(last) > worse(self.latest[0], 4.0))
        if self.done < total and not apart:
            return Order.GO_ON
        rates, losses = np.log10([self.rate_at(step) for step in range(self.done)]), np.array(self.latest)
        self.first = first_loss(rates, losses)
        self.peak, ceiling = peaks_of_sweep(rates, losses)
        self.ceiling, self.began = min(ceiling, log10(self.lr_range.high)), self.done
        self.checks = [self.done + step for step in check_steps(self.steps - self.done)]
        self.latest = []
        return Order.RESTORE

    def _correct(self) -> Order:
        """Move the peak by what the latest pairs say."""
        self.checks = self.checks[1:]
        self.pairs = [pair for pair in self.pairs if pair[0] >= self.time * WINDOW]
        if len(self.pairs) >= 4:
            time, raw, averaged = (np.array(column, dtype=float) for column in zip(*self.pairs, strict=True))
            share = self.time / (self.steps - self.done + self.time)
            target = BY_GRADIENTS if self.by_gradients else MEASURED
            move = correction(float(np.mean(raw - averaged)), progress(time, averaged), share, target)
            self.peak = min(max(self.peak + move, log10(self.lr_range.low)), self.ceiling)
        return Order.KEEP

    def _go_back(self) -> Order:
        """Lower, and never above that again."""
        self.peak -= self.back
        self.ceiling, self.back = self.peak, min(2.0 * self.back, 1.0)
        self.latest, self.pairs = [], []
        return Order.RESTORE

    def to_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "SinglePace":
        """The controller that `to_dict` described."""
        pairs, bounds = [tuple(pair) for pair in data["pairs"]], LearningRateRange(**data["lr_range"])
        known: dict[str, Any] = {**data, "lr_range": bounds, "pairs": pairs}
        return cls(**known)
