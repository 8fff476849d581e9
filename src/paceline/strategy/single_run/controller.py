"""The rate of each step of one run, decided from the losses as they come in.

The controller is plain data. It holds no weights: whoever does follows its `WeightAction`s.
"""

from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from math import isfinite, log10
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.strategy.single_run.rules import (
    correction_steps,
    initial_loss,
    loss_limit,
    loss_slope,
    peak_change,
    peaks_from_range_test,
    range_test_steps,
)
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN
from paceline.traces import LearningRateRange


class WeightAction(Enum):
    """What to do with the weights before the next update."""

    CONTINUE = "continue"
    SAVE = "save a copy"
    RESTORE = "go back to the copy"
    GIVE_UP = "go back to the copy, and train no more"


@dataclass(slots=True)
class SingleRunController:
    """The rate of each step of one run.

    Args:
        lr_range: bounds of the rate.
        steps: length of the run, the range test included.
        estimates_average: whether the losses of averaged weights are estimated from gradients, not measured.
        done: updates done.
        run_start: the step at which the range test ended; None before that.
        peak: log10 of the peak of the rate.
        max_peak: log10 of the highest peak that is allowed.
        reduction: how far the peak falls at the next divergence, in decades.
        initial_loss: the loss at the start of the range test.
        corrections: steps at which the peak is still to be corrected.
        losses: the latest losses; all of them during the range test.
        loss_pairs: time, loss of raw and loss of averaged weights, for the next correction.
        failures_at_lowest: divergences at the lower bound of the rate.
    """

    lr_range: LearningRateRange
    steps: int
    estimates_average: bool = False
    done: int = 0
    run_start: int | None = None
    peak: float = 0.0
    max_peak: float = np.inf
    reduction: float = SINGLE_RUN.first_reduction
    initial_loss: float = np.nan
    corrections: list[int] = field(default_factory=list[int])
    losses: list[float] = field(default_factory=list[float])
    loss_pairs: list[tuple[int, float, float]] = field(default_factory=list[tuple[int, float, float]])
    failures_at_lowest: int = 0  # states of 0.1.0 do not have it

    def __post_init__(self) -> None:
        range_test_steps(self.steps)  # refuses too few

    @property
    def rate(self) -> float:
        """Rate of the next update; after the last step, that of the last."""
        return self.rate_at(self.done)

    def rate_at(self, step: int) -> float:
        """Rate of the update number `step`, with the peak as it is now."""
        if self.run_start is None:
            return float(self.lr_range.from_unit(step / (range_test_steps(self.steps) - 1)))
        length = self.steps - self.run_start
        at = np.array([float(min(step - self.run_start, length - 1))])
        return 10.0**self.peak * float(SINGLE_RUN.base.factor(at, length)[0])

    @property
    def time(self) -> int:
        """Updates done since the range test."""
        return 0 if self.run_start is None else self.done - self.run_start

    @property
    def needs_average(self) -> bool:
        """Whether averaged weights are needed: from the range test to the last correction."""
        return self.run_start is not None and bool(self.corrections)

    @property
    def needs_average_loss(self) -> bool:
        """Whether the loss of the next update should come with that of the averaged weights."""
        return self.needs_average and self.time > 0 and self.time % max(1, self.time // SINGLE_RUN.losses_per_e) == 0

    def observe(self, loss: float, averaged: float | None = None) -> WeightAction:
        """Take the loss of one more update, and say what to do with the weights now.

        Args:
            loss: of the weights before the update.
            averaged: of the averaged weights before the update.
        """
        run_start, self.done = self.run_start, self.done + 1
        self.losses.append(loss if isfinite(loss) else np.inf)
        if run_start is None:
            return self._observe_range_test()
        if averaged is not None and isfinite(averaged):
            self.loss_pairs.append((self.done - 1 - run_start, loss, averaged))
        del self.losses[: -self._divergence_window(run_start)]
        if not isfinite(loss) or self._has_diverged():
            return self._lower_peak()
        if self.corrections and self.done >= self.corrections[0]:
            return self._correct_peak()
        return WeightAction.CONTINUE

    def _divergence_window(self, run_start: int) -> int:
        """How many losses show whether training has diverged."""
        return max(SINGLE_RUN.min_divergence_window, (self.steps - run_start) // SINGLE_RUN.divergence_windows)

    def _has_diverged(self) -> bool:
        limit = loss_limit(self.initial_loss, SINGLE_RUN.divergence_factor)
        return len(self.losses) >= SINGLE_RUN.min_divergence_window and bool(np.mean(self.losses) > limit)

    def _observe_range_test(self) -> WeightAction:
        """End the range test if it is complete, or if training has diverged: no higher rate can teach anything then."""
        if self.done < range_test_steps(self.steps) and not self._test_has_diverged():
            return WeightAction.CONTINUE
        rates, losses = np.log10([self.rate_at(step) for step in range(self.done)]), np.array(self.losses)
        self.initial_loss = initial_loss(rates, losses)
        self.peak, max_peak = peaks_from_range_test(rates, losses)
        self.max_peak = max(min(max_peak, log10(self.lr_range.high)), log10(self.lr_range.low))
        self.run_start = self.done
        self.corrections = [self.done + step for step in correction_steps(self.steps - self.done)]
        self.losses = []
        return WeightAction.RESTORE

    def _test_has_diverged(self) -> bool:
        """Whether the latest loss is not finite, or the last two are far above the first."""
        if not isfinite(self.losses[-1]):
            return True
        least = int(range_test_steps(self.steps) * SINGLE_RUN.min_share_before_stop)
        return len(self.losses) > least and min(self.losses[-2:]) > loss_limit(self.losses[0], SINGLE_RUN.loss_cut_off)

    def _correct_peak(self) -> WeightAction:
        """Move the peak by the latest losses."""
        s = SINGLE_RUN
        self.corrections = self.corrections[1:]
        self.loss_pairs = [pair for pair in self.loss_pairs if pair[0] >= self.time * s.window_start]
        if len(self.loss_pairs) >= s.min_losses:
            time, raw, averaged = (np.array(column, dtype=float) for column in zip(*self.loss_pairs, strict=True))
            share = self.time / (self.steps - self.done + self.time)
            target = s.estimated_target if self.estimates_average else s.measured_target
            change = peak_change(float(np.mean(raw - averaged)), -loss_slope(time, averaged), share, target)
            self.peak = min(max(self.peak + change, log10(self.lr_range.low)), self.max_peak)
        return WeightAction.SAVE

    def _lower_peak(self) -> WeightAction:
        """Lower the peak after a divergence, and never go above that again. Give up at the lower bound."""
        lowest = log10(self.lr_range.low)
        self.failures_at_lowest += self.peak <= lowest
        self.peak = max(self.peak - self.reduction, lowest)
        self.max_peak, self.reduction = self.peak, min(2.0 * self.reduction, SINGLE_RUN.max_reduction)
        self.losses, self.loss_pairs = [], []
        is_over = self.failures_at_lowest >= SINGLE_RUN.max_failures_at_lowest
        return WeightAction.GIVE_UP if is_over else WeightAction.RESTORE

    def to_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "SingleRunController":
        """The controller that `to_dict` described."""
        expected = {part.name for part in fields(cls)}
        if not expected - {"failures_at_lowest"} <= set(data) <= expected:
            raise InputError(
                f"expected a state of a run with {', '.join(sorted(expected))}, got {', '.join(sorted(data))}: it was "
                "saved by another version of Paceline; finish such a run with that version, or start anew"
            )
        pairs, lr_range = [tuple(pair) for pair in data["loss_pairs"]], LearningRateRange(**data["lr_range"])
        state: dict[str, Any] = {**data, "lr_range": lr_range, "loss_pairs": pairs}
        return cls(**state)
