"""The rules of a run without forks, as functions of its losses.

A range test finds the peak: the rate sweeps over the bounds in the first 5 % of the steps (40 in short runs, at most a
fifth), and the weights are put back. After that the peak is corrected by the ratio rho = E / D. E, how much lower the
loss of averaged weights is than that of the raw ones, is what noise costs and the decay will win back. D, what the
averaged loss gains per factor e of time, is progress. At the peaks that end best rho grows with time, in the same way
on networks and on quadratics, and that line is the target (docs/research.md, "One run without forks").
"""

from math import isfinite, log

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN, NoiseTarget

SMALLEST_RATIO = 1e-9  # of noise to progress: a logarithm is taken of it


def range_test_steps(steps: int) -> int:
    """Length of the range test in a run of so many steps."""
    s = SINGLE_RUN
    if steps < s.min_steps:
        raise InputError(
            f"steps must be at least {s.min_steps}, got {steps}: the range test takes up to a fifth of them"
        )
    return round(max(s.range_test_share * steps, min(s.range_test_min_steps, s.range_test_max_share * steps)))


def loss_limit(initial_loss: float, factor: float) -> float:
    """The loss that counts as `factor` times the first one; it is above the first one also if losses are negative."""
    return initial_loss + (factor - 1.0) * abs(initial_loss)


def initial_loss(log10_rates: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> float:
    """The loss at the start of a range test: the mean over its lowest rates."""
    return float(np.mean(losses[log10_rates < log10_rates[0] + SINGLE_RUN.smoothing_decades]))


def peaks_from_range_test(log10_rates: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """log10 of the first peak, and of the highest one to allow later, from a range test.

    The first peak is the smallest rate that brings 70 % of the largest drop of the loss, but well below the rate at
    which all of the drop was lost again. Losses are cut off at four times the first one, and smoothed.

    Args:
        log10_rates: log10 of the rates, increasing.
        losses: the loss before the update at each of them.
    """
    s, first = SINGLE_RUN, initial_loss(log10_rates, losses)
    if not isfinite(first):  # nothing to learn from: the lowest rate that the bounds allow
        return float(log10_rates[0]), np.inf
    clipped = np.minimum(np.nan_to_num(losses, nan=np.inf), loss_limit(first, s.loss_cut_off))
    near = np.abs(log10_rates[:, None] - log10_rates[None, :]) <= s.smoothing_decades / 2
    smoothed = (near @ clipped) / near.sum(axis=1)
    lowest = int(np.argmin(smoothed))
    enough_drop = log10_rates[int(np.argmax(smoothed <= first - s.drop_share * (first - smoothed[lowest])))]
    above_first = log10_rates[lowest:][smoothed[lowest:] > first]
    undone = above_first[0] if above_first.size else (np.inf if isfinite(losses[-1]) else log10_rates[-1])
    first_peak = max(log10_rates[0], min(enough_drop, undone - s.first_peak_gap))
    return float(first_peak), float(undone - s.max_peak_gap)


def correction_steps(length: int) -> list[int]:
    """When the peak is corrected in a run of `length` steps: evenly spaced in log time from 6 to 50 % of it."""
    s = SINGLE_RUN
    shares = np.geomspace(s.first_correction_share, s.last_correction_share, s.corrections)
    return sorted({max(1, round(share * length)) for share in shares})


def loss_slope(steps: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"]) -> float:
    """Change of the loss per factor e of time, by least squares: d loss / d ln(step), negative while it falls."""
    log_time = np.log(steps) - np.mean(np.log(steps))
    return float(log_time @ losses / (log_time @ log_time))


def peak_change(noise: float, progress: float, share: float, target: NoiseTarget = SINGLE_RUN.measured_target) -> float:
    """Decades to move the peak by, from the ratio rho = noise / progress of noise (E) to progress (D).

    clip(0.1 ln((drift + growth * share) / (rho + drift)), -0.2, 0.15)

    Args:
        noise: how much lower the loss of averaged weights is than that of the raw ones.
        progress: what the loss of averaged weights gains per factor e of time.
        share: share of the run that is done.
        target: the ratio that a good peak has.
    """
    s = SINGLE_RUN
    if progress <= 0:
        return -s.max_decrease
    ratio = noise / progress + target.drift
    excess = (target.drift + target.growth * share) / max(ratio, SMALLEST_RATIO)
    return float(np.clip(s.gain * log(excess), -s.max_decrease, s.max_increase))
