"""What runs cost, what a budget still pays for, and which tasks a study begins with."""

import pytest

from paceline.settings import FamilySettings
from paceline.strategy.multitask.run_costs import RunCosts

THREE = ["all", "quarter", "sixteenth"]
COSTS = {"all": 1, "quarter": 0.25, "sixteenth": 0.0625}


def test_without_costs_a_budget_counts_runs() -> None:
    costs = RunCosts(FamilySettings(budget=4))
    assert costs.left_after(["a", "b", "a"]) == 1
    assert costs.affordable(["a", "b"], 1) == ["a", "b"]
    assert costs.affordable(["a", "b"], 0) == []
    assert (costs.most_runs(["a", "b"], 3), costs.fewest_runs(["a", "b"], 3)) == (3, 3)


def test_with_costs_it_pays_for_many_cheap_runs_or_a_few_others() -> None:
    costs = RunCosts(FamilySettings(budget=2, costs=COSTS))
    left = costs.left_after(["all", "quarter", "quarter"])
    assert left == 0.5
    assert costs.affordable(THREE, left) == ["quarter", "sixteenth"]
    assert (costs.most_runs(["quarter", "sixteenth"], left), costs.fewest_runs(["quarter", "sixteenth"], left)) == (
        8,
        2,
    )
    tenths = RunCosts(FamilySettings(budget=1, costs={"a": 0.1}))
    assert tenths.left_after(["a"] * 10) == 0  # the sum of ten tenths is not quite one
    assert tenths.affordable(["a"], tenths.left_after(["a"] * 9)) == ["a"]
    assert tenths.most_runs(["a"], 1) == 10


@pytest.mark.parametrize(
    ("budget", "costs", "first"),
    [
        (9, None, dict.fromkeys(THREE, 2)),
        (8, None, dict.fromkeys(THREE, 1)),
        (4.5, dict.fromkeys(THREE, 0.5), dict.fromkeys(THREE, 2)),  # nine runs
        (2, COSTS, {"quarter": 2, "sixteenth": 8}),
        (1, COSTS, {"sixteenth": 8}),
        (12, COSTS, {"all": 2, "quarter": 8, "sixteenth": 10}),
        (0.1, COSTS, {"sixteenth": 1}),
    ],
)
def test_a_study_begins_with_the_cheaper_tasks(budget, costs, first) -> None:
    assert RunCosts(FamilySettings(budget=budget, costs=costs)).first_runs(THREE) == first
