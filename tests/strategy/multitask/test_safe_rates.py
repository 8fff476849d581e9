"""How high a rate of a family may be, by runs that failed."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import Objective, Schedule, Trace
from paceline.strategy.multitask import SafeRates, Space
from paceline.strategy.multitask.safe_rates import failed_interval, rated_intervals
from paceline.traces import LearningRateRange, Segmenter

SPACE = Space(LearningRateRange(0.01, 100.0), 60, 3)
STEPS = np.arange(0, 61, 4)
FALLING = 2.0 - STEPS / 100


def trace(rates: list[float], values: np.ndarray, **fields) -> Trace:
    return Trace(STEPS, values, Schedule(rates, [0, 20, 40, 60], 60), **fields)


SOUND = trace([0.1, 1.0, 0.1], FALLING, task="a", name="0")
INFINITE = trace([0.1, 10.0, 0.1], np.where(STEPS < 30, FALLING, np.nan), task="a", name="1", failed=True)
ABSURD = replace(INFINITE, values=np.where(STEPS < 30, FALLING, 1e30))
COLLAPSED = trace(
    [0.1, 10.0, 0.1],
    np.where(STEPS < 30, 1 / FALLING, 1e-15),
    task="a",
    name="1",
    objective=Objective("max"),
)
SPIKED = replace(INFINITE, values=np.where((STEPS > 20) & (STEPS < 40), 3.9, FALLING), failed=False)


@pytest.mark.parametrize(("run", "failed"), [(SOUND, None), (INFINITE, 1), (ABSURD, 1), (COLLAPSED, 1), (SPIKED, None)])
def test_the_interval_in_which_a_run_failed(run: Trace, failed: int | None) -> None:
    segments = Segmenter.for_traces([run], SPACE.change_points).split(run)
    assert failed_interval(run, segments) == failed


@pytest.mark.parametrize("failed", [INFINITE, ABSURD, COLLAPSED])
def test_rates_are_limited_below_those_that_failed(failed: Trace) -> None:
    sound = replace(SOUND, values=1 / FALLING, objective=failed.objective) if failed is COLLAPSED else SOUND
    highest = SafeRates.fit([sound, failed], SPACE).highest(["a", "new"], 0.5)
    assert 0.5 < highest[0] < 0.75  # of four decades: 1 was sound, and 10 failed
    assert highest[1] < 0.8
    careful = SafeRates.fit([sound, failed], SPACE).highest(["a"], 0.2)
    assert careful[0] < highest[0]


def test_without_failures_nothing_is_limited() -> None:
    for runs in ([], [SOUND], [SOUND, SPIKED]):
        assert SafeRates.fit(runs, SPACE).highest(["a", "new"], 0.3).tolist() == [1.0, 1.0]


def test_a_run_that_is_under_way_has_not_failed_because_it_rose() -> None:
    head = COLLAPSED.head(10)
    assert SafeRates.fit([head], SPACE).stable is None


def test_a_run_without_a_value_has_failed_at_its_first_rate() -> None:
    silent = trace([10.0, 0.1, 0.1], np.full(len(STEPS), np.nan), task="a", failed=True)
    assert rated_intervals(silent, Segmenter.for_traces([silent], SPACE.change_points)) == [(1.0, True, "a")]
