"""Schedules: rates, means, joins, tables and files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import InputError, Schedule
from paceline.shapes import Constant, Cosine, Exponential, Linear, OneCycle, Recorded, Shape, WarmupStableDecay

SHAPES: list[Shape] = [
    Constant(),
    Linear(),
    Cosine(),
    Exponential(),
    WarmupStableDecay(),
    OneCycle(),
    WarmupStableDecay(decay=0.7, power=2),
]


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    gaps = draw(st.lists(st.integers(1, 50), min_size=1, max_size=6))
    rates = draw(st.lists(st.floats(1e-8, 1e3), min_size=len(gaps), max_size=len(gaps)))
    points = np.cumsum([0, *gaps])
    return Schedule(rates, points, int(points[-1]) + draw(st.integers(0, 20)), draw(st.sampled_from(SHAPES)))


@given(schedules())
def test_json_returns_an_equal_schedule(schedule: Schedule) -> None:
    again = Schedule.from_json(json.loads(json.dumps(schedule.to_json())))
    assert again == schedule
    assert hash(again) == hash(schedule)
    np.testing.assert_array_equal(again(np.arange(schedule.steps)), schedule(np.arange(schedule.steps)))


@given(schedules(), schedules())
def test_a_schedule_from_json_cannot_be_changed_for_itself_or_others(one: Schedule, other: Schedule) -> None:
    first, second = Schedule.from_json(one.to_json()), Schedule.from_json(one.to_json())
    for array in (first.multipliers, first.change_points):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    assert first.extend(0.1, first.steps + 1) != second == one
    assert Schedule.from_json(other.to_json()) == other


@pytest.mark.parametrize(
    "change",
    [
        {"change_points": [0.0, 200.0]},
        {"change_points": [False, 200]},
        {"change_points": [0, 0]},
        {"change_points": [5, 200]},
        {"change_points": [0]},
        {"change_points": []},
        {"change_points": [0, 100, 200]},
        {"change_points": [0, 2_000]},
        {"multipliers": []},
        {"multipliers": [0.0]},
        {"multipliers": [float("nan")]},
        {"steps": True},
        {"steps": 0},
        {"base": {"name": "constant", "power": 1}},
    ],
)
def test_what_is_no_schedule_in_json_is_refused(change) -> None:
    data = {"steps": 1_000, "change_points": [0, 200], "multipliers": [0.1], "base": {"name": "constant"}}
    assert Schedule.from_json(data).multipliers == [0.1]  # also if equal points of another type come after it
    with pytest.raises(InputError):
        Schedule.from_json({**data, **change})


@given(schedules())
def test_rate_is_base_times_multiplier_and_positive(schedule: Schedule) -> None:
    steps = np.arange(schedule.steps)
    rates = schedule(steps)
    assert np.all(rates > 0)
    for t in (0, schedule.steps // 2, schedule.steps - 1):
        k = max(i for i, point in enumerate(schedule.change_points[:-1]) if point <= t)
        expected = schedule.multipliers[k] * schedule.base.factor(np.array([float(t)]), schedule.steps)[0]
        assert schedule(t) == pytest.approx(float(expected))
    assert schedule(schedule.steps + 7) == schedule(schedule.steps - 1)


@given(schedules(), st.data())
def test_mean_log_rate_is_the_mean_over_steps(schedule: Schedule, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, schedule.steps - 1))
    stop = data.draw(st.integers(start + 1, min(schedule.steps, start + 64)))
    steps = np.arange(start, stop)
    assert schedule.mean_log10(start, stop) == pytest.approx(np.log10(schedule(steps)).mean(), abs=1e-9)
    multiplier = np.log10(schedule.multiplier(steps)).mean()
    assert schedule.mean_log10(start, stop, of_multiplier=True) == pytest.approx(multiplier, abs=1e-9)


def test_extend_adds_an_interval_to_a_copy() -> None:
    first = Schedule([1e-2], [0, 10], steps=30)
    second = first.extend(1e-3, 20)
    assert (first(15), second(5), second(15), second(25)) == (1e-2, 1e-2, 1e-3, 1e-3)
    with pytest.raises(ValueError, match="read-only"):
        first.multipliers[0] = 1.0


@given(schedules(), st.data())
def test_join_has_the_rates_of_one_and_then_of_the_other(schedule: Schedule, data: st.DataObject) -> None:
    if schedule.steps < 2:
        return
    at = data.draw(st.integers(1, schedule.steps - 1))
    same = Schedule([0.5], [0, schedule.steps], base=schedule.base)
    other = Schedule.of("cosine" if schedule.base.name == "linear" else "linear", 0.3, schedule.steps)
    steps = np.arange(schedule.steps)
    for then in (same, other):
        np.testing.assert_allclose(
            schedule.join(then, at)(steps), np.where(steps < at, schedule(steps), then(steps)), rtol=1e-9
        )


def test_constant_schedules_of_other_lengths_join_exactly() -> None:
    joined = Schedule.constant(0.1, 6000).join(Schedule([0.01, 0.02], [0, 8000, 12000]), 6000)
    assert [joined(t) for t in (5999, 6000, 8000)] == [0.1, 0.01, 0.02]
    assert joined.change_points.tolist() == [0, 6000, 8000, 12000]


def test_a_log_is_piecewise_constant_if_its_rate_changes_rarely_and_interpolated_otherwise() -> None:
    steps = np.arange(0, 1000, 10)
    stretches = Schedule.from_table(steps, np.where(steps < 500, 0.1, 0.01))
    assert stretches.change_points.tolist() == [0, 500, 990]
    assert (stretches(499), stretches(500)) == (0.1, 0.01)
    curve = Schedule.from_table(steps, 0.1 * np.exp(-steps / 300))
    assert isinstance(curve.base, Recorded)
    assert curve(255) == pytest.approx(0.1 * np.exp(-255 / 300))
    assert Schedule.from_json(curve.to_json()) == curve


def test_load_reads_what_save_wrote(tmp_path) -> None:
    schedule = Schedule.of(OneCycle(warmup=0.2), 0.1, 77)
    schedule.save(tmp_path / "schedule.json")
    assert Schedule.load(tmp_path / "schedule.json") == schedule
    (tmp_path / "old.csv").write_text("step,lr\n")
    with pytest.raises(InputError, match=r"expected a schedule that was saved or exported as JSON, got .*old\.csv"):
        Schedule.load(tmp_path / "old.csv")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule([0.0], [0, 10]), r"must lie in \(0, inf\), got \[0.0\]: use a small rate"),
        (lambda: Schedule([np.inf], [0, 10]), r"must lie in \(0, inf\)"),
        (lambda: Schedule([-1.0], [0, 10]), r"must lie in \(0, inf\)"),
        (lambda: Schedule([1.0, 2.0], [0, 10]), "needs d multipliers and d \\+ 1 change points, got 2 and 2"),
        (lambda: Schedule([1.0], [5, 10]), "start at 0 and increase"),
        (lambda: Schedule([1.0, 1.0], [0, 10, 10]), "start at 0 and increase"),
        (lambda: Schedule([1.0], [0, 10], steps=5), "reach the last change point 10, got 5: raise it"),
        (lambda: Schedule.of("cosin", 1.0, 10), "unknown base shape 'cosin': use one of constant, cosine"),
        (lambda: Schedule.from_table([0, 2, 1], [1, 1, 1]), "sort the table"),
        (lambda: Schedule.from_table([0, 1], [1.0, 0.0]), "drop the rows where the rate is zero"),
        (lambda: Schedule.from_table([0, 1], [1.0]), "two columns of equal length"),
        (
            lambda: Schedule.from_json({"steps": 3}),
            r"got none for \['base', 'change_points', 'multipliers'\]: write it",
        ),
        (lambda: Schedule.constant(1.0, 10).join(Schedule.constant(2.0, 10), 10), "at a step in 1..9, got 10"),
    ],
)
def test_wrong_arguments_say_what_to_do(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
