"""Units of the law: from the user's values to a positive loss, and which observations count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from paceline.errors import InputError
from paceline.model.law.settings import ROWS
from paceline.model.law.state import SchedulePieces
from paceline.traces import Trace, is_sound


@dataclass(frozen=True, slots=True)
class Units:
    """loss = -sign value - floor, and what scales rates and S.

    A positive loss has floor 0. Otherwise the floor is as far below the best value as the values spread.

    Args:
        sign: of improvement, +1 or -1.
        floor: see above.
        largest: the largest S of a run.
        reference: the highest rate.
        first_step: observations before it are ignored.
    """

    sign: float
    floor: float
    largest: float
    reference: float
    first_step: int

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "Units":
        """The units of these runs."""
        sign = traces[0].objective.sign
        losses = -sign * np.concatenate([trace.values[_is_usable(trace.values, trace)] for trace in traces])
        if not losses.size:
            raise InputError(
                f"expected at least one finite value, got none in {len(traces)} run(s): "
                "pass a run that did not fail at once, or lower its rate"
            )
        low, high = float(losses.min()), float(losses.max())
        floor = 0.0 if low > 0 else low - max(high - low, 1e-9 * abs(low), 1e-12)
        ends = [SchedulePieces.of(trace.schedule, np.array([max(trace.last_step, 1)])) for trace in traces]
        largest = max(float(pieces.rate_sum()[0][-1]) for pieces in ends)
        reference = max(float(pieces.rates.max()) for pieces in ends)
        whole = max(max(trace.schedule.steps, trace.last_step) for trace in traces)
        return cls(sign, floor, largest, reference, max(1, int(ROWS.first_share * whole)))

    def to_loss(self, values: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """The user's values -> positive losses."""
        return -self.sign * values - self.floor

    def to_values(self, loss: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Positive losses -> the user's values: the inverse of `to_loss`."""
        return -self.sign * (loss + self.floor)


def usable_observations(
    trace: Trace, units: Units, *, with_parents: bool = False
) -> tuple[Int[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Steps and losses of the observations that the law uses.

    Args:
        trace: the run.
        units: of the fit.
        with_parents: also those of the parents, up to the fork.
    """
    steps, values = trace.path() if with_parents else (trace.steps, trace.values)
    loss = units.to_loss(np.where(_is_usable(values, trace), values, np.nan))
    good = (steps >= units.first_step) & (loss > 0)
    if not good.any() and (steps > 0).any():  # the run has only just begun
        good = (steps > 0) & (loss > 0)
    return steps[good], loss[good]


def _is_usable(values: Float[np.ndarray, "n"], trace: Trace) -> Bool[np.ndarray, "n"]:
    """All sound values. Of a run that failed, those until it was last no worse than at its first one."""
    sound = is_sound(values)
    if not trace.failed or not sound.any():
        return sound
    gain = trace.objective.sign * np.where(sound, values, np.nan)
    last = np.flatnonzero(gain >= gain[sound][0])[-1]
    return sound & (np.arange(len(values)) <= last)
