"""Units of the law, and which observations count."""

import numpy as np
import pytest

from paceline import InputError, Objective, Schedule, Trace
from paceline.model.law.units import Units, usable_observations

CONSTANT = Schedule.constant(0.1, 1000)


def test_a_failed_run_counts_until_it_was_last_no_worse_than_at_first() -> None:
    steps, values = np.arange(10, 81, 10), np.array([3.0, 2.0, 1.5, 2.5, 3.5, 1e30, 1e90, np.nan])
    failed = Trace(steps, values, CONSTANT, failed=True)
    units = Units.of([failed])
    assert usable_observations(failed, units)[0].tolist() == [10, 20, 30, 40]
    whole = Trace(steps[:7], values[:7], CONSTANT)
    assert usable_observations(whole, Units.of([whole]))[0].tolist() == steps[:7].tolist()


@pytest.mark.parametrize("mode", ["min", "max"])
def test_losses_are_positive_and_values_come_back(mode: str) -> None:
    values = np.linspace(-2.0, 3.0, 20) * (1 if mode == "max" else -1)
    run = Trace(np.arange(10, 201, 10), values, CONSTANT, objective=Objective(mode))
    units = Units.of([run])
    assert units.to_loss(values).min() > 0
    assert np.all(np.diff(units.to_loss(values)) < 0)  # values get better
    np.testing.assert_allclose(units.to_values(units.to_loss(values)), values)
    assert Units.of([Trace(np.array([10]), np.array([2.0]), CONSTANT)]).floor == 0.0


def test_a_diverged_run_does_not_set_the_floor() -> None:
    run = Trace(np.arange(10, 201, 10), -np.linspace(1, 2, 20), CONSTANT)
    broken = Trace(np.array([10, 20, 30, 40]), np.array([-1.0, -1.2, 1e80, np.nan]), CONSTANT, failed=True)
    assert Units.of([run, broken]).floor == Units.of([run]).floor


def test_a_run_without_a_finite_value_is_refused() -> None:
    with pytest.raises(InputError, match="at least one finite value, got none in 1 run"):
        Units.of([Trace(np.array([10]), np.array([np.nan]), CONSTANT, failed=True)])


def test_observations_before_one_percent_of_the_run_are_ignored_unless_there_is_nothing_else() -> None:
    steps = np.array([0, 2, 5, 20])
    run = Trace(steps, np.array([4.0, 3.0, 2.0, 1.0]), CONSTANT)
    units = Units.of([run])
    assert units.first_step == 10
    assert usable_observations(run, units)[0].tolist() == [20]
    assert usable_observations(run.head(3), units)[0].tolist() == [2, 5]


def test_the_parents_observations_come_on_request() -> None:
    parent = Trace(np.array([10, 20]), np.array([3.0, 2.0]), CONSTANT)
    fork = parent.fork([30], [1.0], CONSTANT, at=20)
    units = Units.of([parent])
    assert usable_observations(fork, units)[0].tolist() == [30]
    assert usable_observations(fork, units, with_parents=True)[0].tolist() == [10, 20, 30]
