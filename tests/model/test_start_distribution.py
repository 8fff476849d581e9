"""Where new runs begin: over all runs, and per task."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import InputError, Schedule, Trace, TraceModel
from paceline.model.start_distribution import UNKNOWN, StartDistribution
from paceline.traces import Clock, LearningRateRange, Scaling, Segment, Segmenter
from tests.model.example_runs import STEPS, decay

SCALING = Scaling(-4.0, 4.0, 100.0, LearningRateRange(1e-3, 1e-1))


def starts(*traces: Trace) -> list[Segment]:
    segmenter = Segmenter.for_traces(traces, 2)
    return [s for trace in traces for s in segmenter.split(trace)]


def test_it_has_the_mean_and_deviation_of_first_values() -> None:
    segments = starts(decay(1e-2), decay(1e-2, scale=0.5))
    start = StartDistribution.of(segments, SCALING, Clock("step", 200))
    first = (np.array([-3.5, -1.75]) + 4) / 4
    assert (start.step, start.mean, start.deviation) == pytest.approx((0, first.mean(), first.std()))
    assert start.for_task(None) == (start.mean, start.deviation)


def test_tasks_have_means_of_their_own_and_share_the_deviation() -> None:
    segments = starts(*(decay(1e-2, scale=s, task=t) for t, s in (("a", 1.0), ("a", 0.9), ("b", 0.5))))
    start = StartDistribution.of(segments, SCALING, Clock("step", 200), ["a", "b", "c"])
    assert start.for_task(0)[0] == pytest.approx((-3.325 + 4) / 4)
    assert start.for_task(1)[0] == pytest.approx((-1.75 + 4) / 4)
    assert start.for_task(0)[1] == start.for_task(1)[1] < start.deviation
    assert start.for_task(2) == (start.mean, start.deviation)


def test_without_first_intervals_it_is_unknown() -> None:
    start = StartDistribution.of([], SCALING, Clock("log", 1000), ["a"])
    assert start == StartDistribution(10, *UNKNOWN, (UNKNOWN,))


def test_one_run_recorded_late_does_not_widen_the_start() -> None:
    runs = [decay(r, noise=0.01, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2))]
    late = replace(decay(1e-2), steps=STEPS[10:], values=decay(1e-2).values[10:])
    start = TraceModel.fit([*runs, late], intervals=10).start_distribution
    assert start.step == 0
    assert start.deviation < 0.05


def test_a_new_run_begins_where_runs_are_first_observed() -> None:
    steps = np.arange(500, 1001, 20)
    late = [Trace(steps, 4 - 0.003 * steps, Schedule.constant(rate, 1000)) for rate in (0.1, 0.2)]
    model = TraceModel.fit(late, clock="log", intervals=6)
    assert model.start_distribution.step == 500
    forecast = model.forecast(late[0].schedule, [1000])
    assert abs(forecast.median[0] - late[0].last_value) < 0.3
    with pytest.raises(InputError, match="from step 500 or later"):
        model.forecast(late[0].schedule, [100])
