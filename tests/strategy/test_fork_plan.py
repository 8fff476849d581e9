"""How many forks live when, and what that costs."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.strategy import Dynamic, ForkPlan, Rung, greedy_plan, horizon_plan
from paceline.strategy.fork_plan import keep_each_plan, side_by_side_plan
from paceline.strategy.horizon_settings import HORIZON


@pytest.mark.parametrize("steps", [401, 1000, 1003, 4999])
def test_no_plan_costs_more_than_its_cost(steps: int) -> None:
    for cost in np.arange(1.375, 9.0, 0.05):
        assert horizon_plan(float(cost)).total_steps(steps) <= cost * steps
    for forks in range(1, 12):
        assert side_by_side_plan(forks).total_steps(steps) == forks * steps


@pytest.mark.parametrize("cost", [1.375, 1.5, 1.75, 2.0, 2.2, 2.35, 2.5, 2.6, 2.9, 3.2])
def test_a_plan_spends_its_cost(cost: float) -> None:
    steps = 1_000_000
    assert horizon_plan(cost).total_steps(steps) == pytest.approx(cost * steps, abs=10)


def test_a_wide_plan_pays_for_its_first_forks_with_one_fewer_at_the_end() -> None:
    plan = horizon_plan(5)
    assert [(rung.share, rung.forks, rung.clones) for rung in plan.rungs] == [
        (0.025, 6, 0),
        (0.05, 5, 0),
        (0.1, 5, 2),
        (0.2, 5, 2),
        (0.35, 5, 2),
        (0.5, 5, 2),
        (0.7, 4, 2),
    ]
    assert (plan.initial_forks, plan.protect_leader, plan.edge_decades) == (8, True, 0.35)
    assert horizon_plan(8) == side_by_side_plan(8)


def test_the_default_plan() -> None:
    plan = horizon_plan(2.3)
    assert [(rung.share, rung.forks, rung.clones) for rung in plan.rungs] == [
        (0.025, 5, 0),
        (0.05, 3, 0),
        (0.1, 2, 0),
        (0.13, 2, 0),
        (0.157, 2, 0),
        (0.2, 2, 1),
        (0.23, 2, 0),
        (0.28, 2, 0),
        (0.35, 2, 1),
        (0.41, 2, 0),
        (0.5, 2, 1),
        (0.7, 2, 1),
    ]


@pytest.mark.parametrize(
    ("cost", "changes"),
    [
        (1.375, [(0.0, 8), (0.025, 5), (0.05, 3), (0.1, 1)]),  # the least that pays for the halving
        (1.5, [(0.0, 8), (0.025, 5), (0.05, 3), (0.1, 2), (0.225, 1)]),  # too little for a challenger
        (1.75, [(0.0, 8), (0.025, 5), (0.05, 3), (0.1, 2), (0.2, 1), (0.725, 2)]),  # one, as late as it must be
        (3.2, [(0.0, 8), (0.025, 5), (0.05, 3), (0.1, 2), (0.35, 3), (0.725, 4)]),  # three, one after another
    ],
)
def test_plans_below_cost_4_settle_the_leader_and_then_challenge_it(
    cost: float, changes: list[tuple[float, int]]
) -> None:
    plan = horizon_plan(cost)
    counts = [(0.0, plan.initial_forks), *((rung.share, rung.forks) for rung in plan.rungs)]
    found = [now for before, now in zip([(0.0, 0), *counts], counts, strict=False) if now[1] != before[1]]
    assert [(pytest.approx(share), forks) for share, forks in changes] == found


@pytest.mark.parametrize("cost", np.arange(1.375, 4.0, 0.025).tolist())
def test_rungs_of_plans_below_cost_4_lie_apart(cost: float) -> None:
    shares = [0.0, *(rung.share for rung in horizon_plan(cost).rungs), 1.0]
    assert min(np.diff(shares)) >= 0.0125


def test_intervals_lie_between_change_points() -> None:
    plan = ForkPlan(4, (Rung(0.25, 2), Rung(0.5, 2, 1), Rung(0.75, 3, 1)))
    assert plan.change_points(100) == [0, 25, 50, 75, 100]
    assert plan.total_steps(100) == 4 * 25 + 2 * 25 + 2 * 25 + 3 * 25
    assert plan.longest_interval(100) == 25
    assert plan.challenge_steps(100) == {50, 75}


def test_change_points_are_rounded_to_the_side_that_costs_less() -> None:
    fewer, more = ForkPlan(4, (Rung(0.25, 2),)), ForkPlan(2, (Rung(0.25, 4),))
    assert fewer.change_points(10) == [0, 2, 10]
    assert more.change_points(10) == [0, 3, 10]


def test_a_clone_before_the_first_challenge_challenges_nobody() -> None:
    plan = ForkPlan(3, (Rung(0.1, 3, 1), Rung(0.2, 3, 1), Rung(0.5, 3)))
    assert plan.challenge_steps(100) == {20}


def test_plans_of_equal_intervals() -> None:
    assert greedy_plan(3, 4).rungs == (Rung(0.25, 3, 3), Rung(0.5, 3, 3), Rung(0.75, 3, 3))
    assert keep_each_plan(3, 2).rungs == (Rung(0.5, 3),)


def test_costs_from_which_a_plan_can_afford_more_increase() -> None:
    assert 1 < HORIZON.forks_from_cost < HORIZON.early_clones_from_cost


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForkPlan(0, ()), "forks must be at least 1, got 0"),
        (lambda: ForkPlan(2, (Rung(0.5, 1), Rung(0.5, 1))), r"rungs must increase inside \(0, 1\), got \[0.5, 0.5\]"),
        (lambda: ForkPlan(2, (Rung(1.0, 1),)), r"rungs must increase inside \(0, 1\)"),
        (lambda: greedy_plan(3, 0), "intervals must be at least 1, got 0"),
        (lambda: horizon_plan(1.0), "at least 1.375 runs, got 1.0: use cost=1"),
        (lambda: horizon_plan(float("inf")), "cost must be a finite number of runs, got inf"),
        (lambda: Dynamic.horizon(forks=0), "forks must be at least 1, got 0"),
    ],
)
def test_what_a_plan_refuses(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_too_few_steps_are_refused_with_a_number_that_is_enough() -> None:
    plan = horizon_plan(2.3)
    with pytest.raises(InputError, match=r"20 steps are too few .* train for (\d+) steps or more") as error:
        plan.change_points(20)
    enough = int(str(error.value).split("train for ")[1].split(" steps")[0])
    assert len(plan.change_points(enough)) == len(plan.rungs) + 2
    with pytest.raises(InputError):
        plan.change_points(enough - 1)


def test_short_runs_leave_out_corrections_that_have_no_step_of_their_own() -> None:
    plan = horizon_plan(2.0)
    assert plan.for_steps(400) == plan
    short = plan.for_steps(40)
    points = short.change_points(40)
    assert len(points) == len(set(points)) == len(short.rungs) + 2 < len(plan.rungs) + 2
    assert {rung.share for rung in short.rungs} >= {share for share, _ in HORIZON.halving}
    assert short.total_steps(40) <= 2.0 * 40


def test_rungs_that_compare_forks_are_never_left_out() -> None:
    for plan in (keep_each_plan(3, 10), greedy_plan(3, 10), side_by_side_plan(4)):
        assert plan.for_steps(5) == plan
