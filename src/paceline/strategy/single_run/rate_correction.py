"""Correcting the rate of a run by what its noise costs and what it still gains: no other run is needed for it.

E, how much lower the loss of averaged weights is than that of the raw ones, is what noise costs and a lower rate will
win back. D, what the averaged loss gains per factor e of time, is progress. At rates that end best their ratio grows in
the same way on networks and on quadratics (`paceline.strategy.single_run.rules`). A run without forks follows this rule
alone. Forks follow it between comparisons, because a comparison of forks says little about how fast to anneal.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from paceline.strategy.single_run.rules import loss_slope, peak_change
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN
from paceline.study import Reason, because


@dataclass(frozen=True, slots=True)
class RateCorrection:
    """How far to move a rate, and why.

    Args:
        decades: the change of log10 of the rate.
        reason: noise and progress, or what is missing to tell them.
    """

    decades: float
    reason: Reason


def rate_correction(
    steps: Int[np.ndarray, "n"],
    losses: Float[np.ndarray, "n"],
    last_losses: Mapping[str, float],
    step: int,
    length: int,
    *,
    least: float = 0.0,
) -> RateCorrection:
    """How far to move the rate of a run.

    Args:
        steps: when losses were observed.
        losses: of averaged weights; smaller is better.
        last_losses: the latest losses of "raw" and "averaged" weights.
        step: updates done.
        length: updates of the whole run.
        least: the smallest change to make, in decades.
    """
    recent = (steps >= step * SINGLE_RUN.window_start) & (steps > 0)
    if set(last_losses) != {"raw", "averaged"} or recent.sum() < SINGLE_RUN.min_losses:
        return RateCorrection(0.0, because("too few observations"))
    noise = last_losses["raw"] - last_losses["averaged"]
    progress = -loss_slope(steps[recent].astype(float), losses[recent])
    decades = peak_change(noise, progress, step / length)
    reason = because("noise and progress", noise=noise, progress=progress)
    return RateCorrection(decades if abs(decades) >= least else 0.0, reason)
