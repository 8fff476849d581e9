"""AutoLRS: the published rules, one by one."""

import numpy as np
import pytest

from benchmarks.peers import AutoLRS
from benchmarks.peers.autolrs import CANDIDATES, exponential, next_rate
from paceline.errors import InputError
from paceline.study import Dropped, Event, Interval
from paceline.tuner import Tuner
from tests.tuner.toy_study import loss


@pytest.mark.parametrize(("a", "b", "c"), [(2.0, -0.03, 0.5), (-1.0, -0.2, 3.0), (0.3, -0.005, 1.0)])
def test_the_exponential_is_recovered_also_with_an_outlier(a: float, b: float, c: float) -> None:
    t = np.arange(1.0, 101.0)
    y = a * np.exp(b * t) + c
    np.testing.assert_allclose(exponential(t, y), (a, b, c), rtol=1e-3)
    y[40] += 30.0
    np.testing.assert_allclose(exponential(t, y), (a, b, c), rtol=1e-3)


def test_few_values_are_not_extrapolated() -> None:
    assert exponential(np.array([1.0, 2.0]), np.array([3.0, 2.0])) == (0.0, -1.0, 2.0)


def test_the_next_trial_has_the_lowest_confidence_bound() -> None:
    x, losses = np.array([0.1, 0.5, 0.9]), np.array([1.0, 0.2, 1.5])
    explored = next_rate(x, losses, 1000.0)
    assert np.abs(explored - x).min() > 0.09  # far from what is known
    assert abs(next_rate(x, losses, 0.0) - 0.5) < 0.15  # near the best
    assert 0 <= next_rate(x, np.array([np.nan, 0.2, np.nan]), 0.0) <= 1
    assert next_rate(x, np.full(3, np.nan), 1.0) in CANDIDATES


def test_autolrs_tries_ten_rates_before_each_stage_and_runs_the_best_forecast() -> None:
    events: list[Event] = []
    tuner = Tuner(lr=(1e-4, 1e-1), steps=620, strategy=AutoLRS(), on_event=events.append)
    asked: list[Interval] = []
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            asked.append(p)
            tuner.tell(p, *loss(p, every=1))
    stages = [p for p in asked if p.fork == 10]
    assert [(p.start, p.stop) for p in stages] == [(0, 20), (20, 60), (60, 140), (140, 300), (300, 460), (460, 620)]
    for stage in stages:
        trials = [p for p in asked if p.start == stage.start and p.fork != 10]
        assert len(trials) == 10
        assert {p.stop - p.start for p in trials} == {(stage.stop - stage.start) // 10}
        assert stage.schedule.multipliers[-1] in {p.schedule.multipliers[-1] for p in trials}
        assert {p.parent for p in trials} == ({None} if stage.start == 0 else {10})
    assert {e.fork for e in events if isinstance(e, Dropped)} == {p.fork for p in asked} - {10}
    assert tuner.result.fork == 10
    assert sum(p.stop - p.start for p in asked) == tuner.total_steps == 1240


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AutoLRS(cost=1.0), r"cost must lie in \(1, 11\] for 10 trials, got 1.0"),
        (lambda: AutoLRS(trials=1), "expected two trials"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=100, strategy=AutoLRS()), "100 steps are too few for stages"),
    ],
)
def test_bad_settings_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
