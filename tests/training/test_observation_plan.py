"""When a run is observed: by default about 40 times, or as often as its share of the time allows."""

from itertools import pairwise

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.strategy import Dynamic
from paceline.traces import Schedule
from paceline.training.observation_plan import ObservationPlan

STEPS = 4000
EVALUATING = ObservationPlan(evaluates=True)


def observed(plan: ObservationPlan, change_points: list[int], steps: int = STEPS) -> list[int]:
    """All steps at which a run with these intervals is observed."""
    found = list[int]()
    for i, stop in enumerate(change_points[1:], 2):
        schedule = Schedule(np.full(i - 1, 0.1), change_points[:i], steps)
        done = change_points[i - 2]
        while done < stop:
            done = plan.next(done, schedule, stop)
            found.append(done)
    return found


def rungs() -> list[int]:
    """The change points of the default strategy."""
    return Dynamic.horizon(cost=2.3).plan.for_steps(STEPS).change_points(STEPS)


def test_a_run_is_evaluated_some_40_times_and_three_times_before_each_decision() -> None:
    change_points = rungs()
    steps = observed(EVALUATING, change_points)
    assert 40 <= len(steps) <= 70
    for start, stop in pairwise(change_points):
        assert len([step for step in steps if start < step <= stop]) >= 3
    assert max(np.diff([0, *steps])) <= STEPS / 40 + 1
    assert steps[-5:] == [3920, 3940, 3960, 3980, 4000]


@pytest.mark.parametrize("cost", [1.0, 10.0, 30.0, 1000.0])
def test_evaluations_take_their_share_of_each_interval_but_each_has_one(cost: float) -> None:
    plan, change_points = EVALUATING.with_cost(cost), rungs()
    steps = observed(plan, change_points)
    for start, stop in pairwise(change_points):
        inside = [step for step in steps if start < step <= stop]
        assert inside[-1] == stop
        assert len(inside) == 1 or len(inside) * plan.cost <= 0.1 * (stop - start)


def test_a_range_test_has_enough_of_them_whatever_they_cost() -> None:
    plan = EVALUATING.with_cost(1000.0)
    assert len(observed(plan, [0, 200], 200)) == 16
    assert len(observed(plan, [0, 10], 10)) == 10


def test_a_run_of_several_rates_is_evaluated_at_each_change_point() -> None:
    change_points = [0, 400, 1000, STEPS]
    schedule, plan, steps = Schedule([0.1, 0.2, 0.1], change_points, STEPS), EVALUATING.with_cost(1000.0), [0]
    while steps[-1] < STEPS:
        steps.append(plan.next(steps[-1], schedule, STEPS))
    assert steps == change_points
    many = Schedule(np.full(STEPS, 0.1), range(STEPS + 1), STEPS)
    assert plan.next(0, many, STEPS) == STEPS // 16


def test_a_larger_share_evaluates_more_often() -> None:
    count = {
        share: len(observed(ObservationPlan(evaluates=True, share=share).with_cost(20.0), [0, 400, STEPS]))
        for share in (0.05, 0.1, 0.2)
    }
    assert count[0.05] < count[0.1] < count[0.2]


def test_training_losses_are_observed_200_times_unless_that_takes_too_long() -> None:
    plan = ObservationPlan(evaluates=False)
    assert len(observed(plan, [0, STEPS])) == 200
    assert len(observed(plan.with_cost(4 / 3), [0, STEPS])) == 200
    assert len(observed(plan.with_cost(4 / 3), [0, 1000], 1000)) == pytest.approx(75, abs=10)
    assert len(observed(plan.with_cost(4 / 3), [0, 100], 100)) == pytest.approx(40, abs=10)


def test_every_decides_if_it_is_given() -> None:
    for plan in (ObservationPlan(evaluates=True, every=500), ObservationPlan(evaluates=True, every=500, cost=1e6)):
        assert observed(plan, [0, 600, STEPS]) == [500, 600, *range(1000, 4001, 500)]


def test_a_measured_cost_is_rounded_up_so_that_it_is_mostly_found_again() -> None:
    assert [EVALUATING.with_cost(cost).cost for cost in (1.05, 1.3, 1.41)] == [pytest.approx(2**0.5)] * 3
    assert EVALUATING.with_cost(0.0).cost == 1 / 16


def test_a_state_brings_the_cost_and_one_of_the_last_release_its_200_observations() -> None:
    plan = EVALUATING.with_cost(20.0)
    assert EVALUATING.with_state(plan.state_dict()) == plan
    old = EVALUATING.with_state(None)
    assert observed(old, [0, 110, STEPS]) == [*range(20, 110, 20), 110, *range(120, 4001, 20)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": 0}, "every must be 1 or more, got 0"),
        ({"share": 0.0}, r"evaluate_share must lie in \(0, 1\), got 0.0"),
        ({"share": 1.5}, r"evaluate_share must lie in \(0, 1\), got 1.5"),
    ],
)
def test_wrong_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ObservationPlan(evaluates=True, **settings)
