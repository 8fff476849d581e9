"""One run without forks: a range test, a warm-up and a decay, corrected on the way.

`SingleRunController` decides step by step, for `PaceLR`. `SingleRun` does the same in intervals, for `tune(cost=1)`.
"""

from paceline.strategy.single_run.controller import SingleRunController, WeightAction
from paceline.strategy.single_run.rate_correction import RateCorrection, rate_correction
from paceline.strategy.single_run.rules import correction_steps, loss_slope, range_test_steps
from paceline.strategy.single_run.single_run import SingleRun, test_peaks
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN

__all__ = [
    "SINGLE_RUN",
    "RateCorrection",
    "SingleRun",
    "SingleRunController",
    "WeightAction",
    "correction_steps",
    "loss_slope",
    "range_test_steps",
    "rate_correction",
    "test_peaks",
]
