"""Runs as rows: interpolation in g, what is read of a run, and until when two runs were one."""

import numpy as np
import pytest

from paceline import InputError, Objective, Schedule, Trace
from paceline.model.law.rows import (
    NODES,
    UNKNOWN_NOISE,
    Units,
    holds_together,
    noise_level,
    observed,
    rows_of,
    split,
    stretches,
    weights,
)
from paceline.model.law.terms import HIGHEST, LOWEST
from tests.model.law import drawn

CONSTANT = Schedule.constant(0.1, 1000)


def trace(stop: int = 500, **fields) -> Trace:
    steps = np.arange(10, stop + 1, 10)
    return Trace(steps, 1 + 1 / steps, CONSTANT, **fields)


def fork(parent: Trace, at: int, **fields) -> Trace:
    steps = np.arange(at + 10, 1001, 10)
    return parent.fork(steps, 1 + 1 / steps, CONSTANT, at=at, **fields)


@pytest.mark.parametrize("g", [LOWEST, 0.33, 0.85, float(NODES[4]), float(NODES[4]) + 1e-13, 1.79, HIGHEST])
def test_weights_interpolate(g: float) -> None:
    w = weights(g)
    assert w.sum() == pytest.approx(1)
    for degree in range(len(NODES)):
        assert w @ NODES**degree == pytest.approx(g**degree)
    for rate in (1e-3, 0.1, 1.0):  # what is interpolated: a rate over the largest, to the power g
        assert w @ rate**NODES == pytest.approx(rate**g, abs=1e-5)


def test_until_when_two_runs_were_one() -> None:
    parent = trace(name="parent")
    one, other = fork(parent, 300, name="one"), fork(parent, 200, name="other")
    twin, child = fork(parent, 300, name="twin"), fork(one, 700, name="child")
    early = fork(one, 100, name="early")  # cloned before its parent was: a clone of the grandparent
    expected = {
        (parent, parent): np.inf,
        (parent, one): 300,
        (one, other): 200,
        (one, twin): 300,
        (one, child): 700,
        (other, child): 200,
        (child, parent): 300,
        (early, parent): 100,
        (early, one): 100,
        (early, other): 100,
    }
    for (a, b), step in expected.items():
        assert split(a, b) == split(b, a)
        assert np.exp(split(a, b)) == pytest.approx(step)


def test_strangers_and_namesakes() -> None:
    stranger = trace(name="stranger")
    assert split(trace(), trace()) == -np.inf
    assert split(trace(name="a"), stranger) == -np.inf
    assert split(fork(trace(name="a"), 100), fork(stranger, 100)) == -np.inf
    assert split(trace(300, name="a"), trace(500, name="a")) == np.inf  # the same run, longer
    assert split(trace(name="a", task="x"), trace(name="a", task="y")) == -np.inf
    longer = fork(trace(500, name="a"), 200)
    assert np.exp(split(longer, fork(trace(300, name="a"), 250))) == pytest.approx(200)


def test_stretches_are_equal_in_log_steps_and_none_is_empty() -> None:
    number = stretches(np.arange(10, 1001), 5)
    assert np.unique(number).tolist() == list(range(5))
    ends = np.arange(10, 1001)[np.flatnonzero(np.diff(number, append=5))]
    np.testing.assert_allclose(np.diff(np.log(ends)), np.log(100) / 5, rtol=0.05)
    assert stretches(np.array([1, 1000]), 40).tolist() == [0, 1]
    assert stretches(np.array([7]), 40).tolist() == [0]


def test_rows_are_means_and_know_who_leads() -> None:
    runs = drawn.runs(3)
    units = Units.of(runs)
    rows = rows_of(runs, units, ())
    assert rows is not None
    count = (rows.single / rows.noise) ** 2  # observations behind a row
    assert count.sum() == pytest.approx(sum(len(run.steps) for run in runs))
    for number, run in enumerate(runs):
        mine = rows.run == number
        assert rows.loss[mine] @ count[mine] == pytest.approx(run.values.sum())
    last = [rows.behind[rows.run == number][-1] for number in range(3)]
    assert min(last) == 1.0
    assert last[0] > 1.1  # the lowest rate is behind


def test_noise_is_measured_by_second_differences() -> None:
    random, steps = np.random.default_rng(0), np.arange(1, 2001)
    level = 3.0 * steps**-0.4
    np.testing.assert_allclose(noise_level(level, level * (1 + 0.05 * random.standard_normal(2000))), 0.05, rtol=0.8)
    assert np.mean(noise_level(level, level * (1 + 0.05 * random.standard_normal(2000)))) == pytest.approx(
        0.05, rel=0.05
    )
    assert noise_level(level, level).max() < 2e-4 + 0.01  # a steep, smooth beginning is hardly noise
    assert noise_level(np.ones(3), np.ones(3)).tolist() == [UNKNOWN_NOISE] * 3


@pytest.mark.parametrize(
    ("values", "holds"),
    [([3.0, 2.0, 1.0], True), ([3.0, 4.0, 7.0], False), ([3.0, 40.0, 1.0], False), ([3.0, 4.0, 5.0], True)],
)
def test_what_comes_apart_is_left_out(values: list[float], holds: bool) -> None:
    assert holds_together(Trace(np.arange(10, 31, 10), np.array(values), CONSTANT)) is holds


def test_a_failed_run_is_read_as_long_as_it_did_not() -> None:
    steps, values = np.arange(10, 81, 10), np.array([3.0, 2.0, 1.5, 2.5, 3.5, 1e30, 1e90, np.nan])
    failed = Trace(steps, values, CONSTANT, failed=True)
    units = Units.of([failed])
    assert observed(failed, units)[0].tolist() == [10, 20, 30, 40]
    whole = Trace(steps[:7], values[:7], CONSTANT)
    assert observed(whole, Units.of([whole]))[0].tolist() == steps[:7].tolist()


@pytest.mark.parametrize("mode", ["min", "max"])
def test_units_come_back_and_make_losses_positive(mode: str) -> None:
    values = np.linspace(-2.0, 3.0, 20) * (1 if mode == "max" else -1)
    run = Trace(np.arange(10, 201, 10), values, CONSTANT, objective=Objective(mode))
    units = Units.of([run])
    assert units.loss(values).min() > 0
    assert np.all(np.diff(units.loss(values)) < 0)  # values get better
    np.testing.assert_allclose(units.values(units.loss(values)), values)
    assert Units.of([trace()]).floor == 0.0


def test_a_diverged_run_does_not_set_the_floor() -> None:
    run = Trace(np.arange(10, 201, 10), -np.linspace(1, 2, 20), CONSTANT)
    broken = Trace(np.array([10, 20, 30, 40]), np.array([-1.0, -1.2, 1e80, np.nan]), CONSTANT, failed=True)
    assert Units.of([run, broken]).floor == Units.of([run]).floor


def test_nothing_to_learn_from() -> None:
    with pytest.raises(InputError, match="at least one finite value, got none in 1 run"):
        Units.of([Trace(np.array([10]), np.array([np.nan]), CONSTANT, failed=True)])
