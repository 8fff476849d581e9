"""The numbers of a run without forks that were found by search, each with its meaning.

docs/research_log.md, "One run without forks", has the tables they come from. Shares are of a run's steps. Changes of a
rate are in decades.
"""

from dataclasses import dataclass
from typing import NamedTuple

from paceline.shapes import Shape, WarmupStableDecay


class NoiseTarget(NamedTuple):
    """The ratio rho of noise to progress at a good peak: rho = growth * share of the run done.

    Args:
        drift: what the noise lacks because the average of the weights lags behind, in units of progress. It is added to
            the ratio and to the target before they are compared.
        growth: how the ratio grows over the run.
    """

    drift: float
    growth: float


WARMUP_THEN_DECAY = WarmupStableDecay(warmup=0.05, decay=0.7)
MEASURED = NoiseTarget(drift=0.14, growth=1.8)
ESTIMATED = NoiseTarget(drift=0.07, growth=2.2)


@dataclass(frozen=True, slots=True)
class SingleRunSettings:
    """The range test, the base, and the corrections of the peak ("One run without forks")."""

    # The shape that the run follows after the range test.
    base: Shape = WARMUP_THEN_DECAY

    # -- the range test --
    # Its share of the steps.
    range_test_share: float = 0.05
    # Its least number of steps: with fewer, noise hides what a rate does ...
    range_test_min_steps: int = 40
    # ... but at most this share of a short run.
    range_test_max_share: float = 0.2
    # The shortest run that it can be a share of.
    min_steps: int = 20
    # Losses are averaged over rates within this many decades.
    smoothing_decades: float = 0.45
    # Losses are cut off at this many times the first.
    loss_cut_off: float = 4.0
    # The test ends early if the loss passes that limit after this share of it.
    min_share_before_stop: float = 0.25
    # The first peak is the smallest rate that brings this share of the largest drop, ...
    drop_share: float = 0.7
    # ... but at least this many decades below the rate that undid the drop.
    first_peak_gap: float = 0.75
    # Later peaks stay at least this many decades below that rate.
    max_peak_gap: float = 0.15

    # -- corrections of the peak --
    # How many there are, evenly spaced in log time between two shares of the run.
    corrections: int = 12
    first_correction_share: float = 0.06
    last_correction_share: float = 0.5
    # Each uses the losses since this share of the time so far, ...
    window_start: float = 0.7
    # ... if there are at least this many.
    min_losses: int = 4
    # How far the peak moves if the ratio of noise to progress is off by a factor e, ...
    gain: float = 0.1
    # ... and the most it moves down and up.
    max_decrease: float = 0.2
    max_increase: float = 0.15
    # The target if losses of averaged weights are measured, ...
    measured_target: NoiseTarget = MEASURED
    # ... and if they are estimated from gradients: half of the lag is in the estimate, and somewhat more noise.
    estimated_target: NoiseTarget = ESTIMATED
    # The average of the weights at step t is about as good as the weights at step t / 1.15.
    averaging_lag: float = 1.15
    # Losses of averaged weights per factor e of time. More add little, and each may cost a forward pass.
    losses_per_e: int = 400

    # -- divergence --
    # The run has diverged if its loss is this many times the first, ...
    divergence_factor: float = 1.5
    # ... on average over one of this many parts of the run, ...
    divergence_windows: int = 100
    # ... but over at least this many losses.
    min_divergence_window: int = 4
    # How far the peak falls after the first divergence; twice as far each time after that, ...
    first_reduction: float = 0.1
    # ... up to this.
    max_reduction: float = 1.0
    # After so many divergences at the lower bound of the rate, no rate will help.
    max_failures_at_lowest: int = 5


SINGLE_RUN = SingleRunSettings()
