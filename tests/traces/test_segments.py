"""Traces split into intervals: counts, sums, failures, forks and growth."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import InputError, Objective, Schedule, Trace
from paceline.shapes import Linear, Shape
from paceline.traces import Clock, Segment, Segmenter
from paceline.traces.segments import Moments

LOSS = Objective()


def segmenter(
    points=(0, 40, 80, 120), *, order=1, clock="step", base: Shape | None = None, objective=LOSS
) -> Segmenter:
    return Segmenter(Clock(clock, 120), None if points is None else np.array(points), order, base, objective)


@st.composite
def recorded(draw: st.DrawFn) -> Trace:
    steps = sorted(draw(st.sets(st.integers(0, 120), min_size=2, max_size=40)))
    values = draw(st.lists(st.floats(-5, 5), min_size=len(steps), max_size=len(steps)))
    schedule = Schedule([0.1, 0.01, 0.2], [0, 40, 80, 120])
    return Trace(np.array(steps), np.array(values), schedule, name="run")


@given(recorded())
def test_every_observation_but_the_first_is_counted_once_and_values_are_unchanged(trace: Trace) -> None:
    segments = segmenter().split(trace)
    assert sum(s.moments.n for s in segments) == len(trace.steps) - 1
    rebuilt = np.concatenate([s.start_values[0] + s.residuals for s in segments])
    np.testing.assert_allclose(-rebuilt, trace.values[1:], atol=1e-12)
    for s in segments:
        assert np.all(s.elapsed > 0)
        sums = (
            len(s.elapsed),
            s.residuals.sum(),
            s.elapsed.sum(),
            s.residuals @ s.residuals,
            s.residuals @ s.elapsed,
            s.elapsed @ s.elapsed,
        )
        np.testing.assert_allclose(astuple(s.moments), sums, rtol=1e-12, atol=1e-12)


def same(a: Segment, b: Segment) -> bool:
    facts = ("trace", "start", "stop", "start_values", "controls", "failed", "first")
    return all(getattr(a, f) == getattr(b, f) for f in facts) and np.allclose(
        astuple(a.moments), astuple(b.moments), atol=1e-12
    )


@given(recorded(), st.data())
def test_growing_a_trace_gives_the_same_intervals_as_splitting_it_whole(trace: Trace, data: st.DataObject) -> None:
    settings = segmenter(order=2)
    count = data.draw(st.integers(1, len(trace.steps) - 1))
    before = settings.split(trace.head(count))
    shorter = before[-1] if before else None
    after = settings.split(trace, shorter)
    grown = before[:-1] if shorter and after and after[0].start == shorter.start else before
    whole = settings.split(trace)
    assert len([*grown, *after]) == len(whole)
    assert all(same(a, b) for a, b in zip([*grown, *after], whole, strict=True))


def test_irregular_steps_move_borders_to_the_last_observation_before_them() -> None:
    trace = Trace(np.array([0, 35, 50, 90, 120]), np.arange(5.0), Schedule([0.1, 0.01, 0.2], [0, 40, 80, 120]))
    segments = segmenter().split(trace)
    assert [(s.start, s.stop) for s in segments] == [(0, 35), (35, 50), (50, 120)]
    # 35..50 holds 5 steps at 0.1 and 10 at 0.01
    assert segments[1].controls[0] == pytest.approx((5 * -1 + 10 * -2) / 15)


def test_a_rate_that_varies_inside_an_interval_counts_by_its_mean_log() -> None:
    schedule = Schedule.of("linear", 1.0, 120)
    trace = Trace(np.arange(0, 121, 20), np.arange(7.0), schedule)
    rate, multiplier = segmenter().split(trace), segmenter(base=Linear()).split(trace)
    assert rate[1].controls[0] == pytest.approx(np.log10(schedule(np.arange(40, 80))).mean(), abs=1e-4)
    assert multiplier[1].controls[0] == 0.0


def test_forks_and_their_parent_count_nothing_twice_and_share_the_anchor() -> None:
    schedule = Schedule.constant(0.1, 120)
    parent = Trace(np.arange(0, 121, 10), np.linspace(3, 1, 13), schedule, name="a")
    forks = [parent.fork(np.arange(60, 121, 10), np.full(7, 2.0 + i), schedule, at=50, name=f"b{i}") for i in range(3)]
    settings = segmenter(order=2)
    own = [s for fork in forks for s in settings.split(fork)]
    assert sum(s.moments.n for s in own) == 3 * 7
    firsts = [s for s in own if s.start == 50]
    assert len(firsts) == 3
    assert all(s.start_values[0] == -parent.values[5] for s in firsts)
    assert all(s.start_values[1] == -parent.values[4] for s in firsts)
    assert not any(s.first for s in own)


def test_history_of_higher_orders_repeats_the_oldest() -> None:
    trace = Trace(np.arange(0, 121, 20), np.arange(7.0), Schedule([0.1, 0.01, 0.001], [0, 40, 80, 120]))
    segments = segmenter(order=3).split(trace)
    assert segments[0].start_values == (0.0, 0.0, 0.0)
    assert segments[2].start_values == (-4.0, -2.0, 0.0)
    np.testing.assert_allclose(segments[2].controls, [-3, -2, -1])
    np.testing.assert_allclose(segments[0].controls, [-1, -1, -1])


def test_on_the_log_clock_intervals_begin_at_one_percent() -> None:
    clock = Clock("log", 1000)
    trace = Trace(np.array([0, 5, 10, 100, 550, 1000]), np.arange(6.0), Schedule.constant(0.1, 1000))
    segments = Segmenter(clock, clock.equal_intervals(2), 1, None, Objective()).split(trace)
    assert [(s.start, s.stop, s.moments.n) for s in segments] == [(10, 100, 1), (100, 1000, 2)]


def test_without_points_a_run_is_split_where_its_rate_changes_or_into_twenty() -> None:
    own = segmenter(points=None).split(Trace(np.arange(121), np.arange(121.0), Schedule([1.0, 2.0], [0, 30, 120])))
    assert [s.start for s in own] == [0, 30]
    assert len(segmenter(points=None).split(Trace(np.arange(121), np.arange(121.0), Schedule.constant(1.0, 120)))) == 20


def failing(values, **fields) -> list[Segment]:
    steps = 20 * np.arange(len(values))
    return segmenter().split(Trace(steps, np.array(values), Schedule.constant(0.1, 120), **fields))


def test_the_interval_in_which_a_run_fails_is_the_one_that_failed() -> None:
    assert [s.failed for s in failing([3.0, 2.0, 2.0, 1.0])] == [False, False]
    diverged = failing([3.0, 2.0, 2.0, 2.0, np.nan], failed=True)
    assert [(s.start, s.moments.n, s.failed) for s in diverged] == [(0, 2, False), (40, 1, True)]
    at_once = failing([3.0, 2.0, 2.0, np.inf], failed=True)
    assert [(s.start, s.moments.n, s.failed) for s in at_once] == [(0, 2, False), (40, 0, True)]
    assert failing([np.nan], failed=True) == []
    spiked = failing([3.0, 2.0, 2.0, 3.5, 1.0])
    assert [s.failed for s in spiked] == [False, True]
    assert not any(s.failed for s in failing([-3.0, -2.0, -1.0, -0.5, 5.0]))  # no ratio of values that are not positive


def test_a_run_with_a_spike_has_failed_until_it_recovers() -> None:
    blown = failing([3.0, 2.0, 2.0, 2.0, 1e3, 1e3, 1e3])
    assert [(s.start, s.failed) for s in blown] == [(0, False), (40, True), (80, True)]
    recovered = segmenter(points=range(0, 121, 20)).split(
        Trace(20 * np.arange(7), np.array([3.0, 2.0, 9.0, 9.0, 2.0, 1.9, 1.8]), Schedule.constant(0.1, 120))
    )
    assert [s.failed for s in recovered] == [False, True, True, True, False, False]


def test_noise_is_not_a_spike() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(121)
    noisy = Trace(steps, 0.5 + np.abs(0.25 * rng.standard_normal(121)), Schedule.constant(0.1, 120))
    assert not any(s.failed for s in segmenter().split(noisy))
    noisy = Trace(steps, noisy.values + np.where(steps > 100, 50.0, 0.0), Schedule.constant(0.1, 120))
    assert [s.failed for s in segmenter().split(noisy)] == [False, False, True]


def test_a_later_failure_replaces_the_interval_of_the_shorter_trace() -> None:
    steps, schedule = np.arange(0, 101, 10), Schedule.constant(0.1, 120)
    values = np.linspace(3, 2, 11)
    shorter = segmenter().split(Trace(steps[:7], values[:7], schedule, name="x"))[-1]
    values[7] = np.nan
    (again,) = segmenter().split(Trace(steps[:8], values[:8], schedule, name="x", failed=True), shorter)
    assert (again.start, again.stop, again.moments.n, again.failed) == (40, 60, 2, True)


def test_past_the_last_change_point_intervals_continue_at_the_same_spacing() -> None:
    trace = Trace(np.arange(0, 241, 10), np.arange(25.0), Schedule.constant(0.1, 240))
    assert [s.start for s in segmenter().split(trace)] == [0, 40, 80, 120, 160, 200]
    clock = Clock("log", 100)
    log = Segmenter(clock, np.array([1, 10, 100]), 1, None, LOSS)
    assert log.points(trace.schedule, 5_000).tolist() == [1, 10, 100, 1_000, 10_000]


def test_a_run_with_new_change_points_is_refused() -> None:
    run = Trace(np.arange(0, 61, 2), np.arange(31.0), Schedule.constant(0.1, 120), name="r")
    shorter = segmenter(points=None).split(run)[-1]
    longer = Trace(run.steps, run.values, Schedule([0.1, 0.2], [0, 37, 120]), name="r")
    with pytest.raises(InputError, match=r"no longer has an interval that starts at step 54: .*; fit with intervals="):
        segmenter(points=None).split(longer, shorter)


def test_spikes_of_a_log_loss_are_ratios_too() -> None:
    trace = Trace(np.array([0, 20, 40]), np.array([1.0, 1.6, 0.9]), Schedule.constant(0.1, 120))
    assert segmenter(objective=Objective(transform="log")).split(trace)[0].failed
    calm = Trace(np.array([0, 20, 40]), np.array([1.0, 1.4, 0.9]), Schedule.constant(0.1, 120))
    assert not segmenter(objective=Objective(transform="log")).split(calm)[0].failed


def whole_interval() -> Segment:
    steps = np.arange(0, 101, 10)
    run = Trace(steps, np.exp(-steps / 20), Schedule.constant(0.1, 100))
    return Segmenter.for_traces([run], 1).split(run)[0]


def test_the_ending_of_an_interval_keeps_its_last_share_and_its_start() -> None:
    whole = whole_interval()
    end = whole.ending(0.3)
    assert end.elapsed.tolist() == [70, 80, 90, 100]
    assert end.moments == Moments().append(whole.elapsed[-4:], whole.residuals[-4:])
    assert (end.start, end.stop, end.start_values) == (whole.start, whole.stop, whole.start_values)
    assert end.end_value == whole.end_value


@pytest.mark.parametrize(("share", "kept"), [(1.0, 10), (0.5, 6), (0.01, 3)])
def test_an_ending_has_enough_observations_to_tell_their_noise(share: float, kept: int) -> None:
    assert whole_interval().ending(share).moments.n == kept
