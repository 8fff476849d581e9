"""Costs, wanted tasks and budgets: what is refused, and what becomes plain numbers."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.settings.task_settings import check_budget, check_costs, check_wanted


def test_numbers_become_plain_and_whole_ones_ints() -> None:
    costs = check_costs({"b": np.float32(0.25), "a": np.int64(2), "c": 3.0})
    assert repr(costs) == "{'a': 2, 'b': 0.25, 'c': 3}"
    assert [repr(check_budget(budget, costs)) for budget in (2.5, 20.0, np.int64(3))] == ["2.5", "20", "3"]
    assert check_wanted(["b", "a"]) == ("b", "a")


@pytest.mark.parametrize("costs", [{}, 5, [("a", 1)]])
def test_costs_are_by_task(costs) -> None:
    with pytest.raises(InputError, match="costs must give the cost of a run by task"):
        check_costs(costs)


@pytest.mark.parametrize("cost", [0, -1, np.nan, np.inf, "1", True, None])
def test_costs_and_budgets_are_positive(cost) -> None:
    with pytest.raises(InputError, match=r"costs\['a'\] must be a positive number"):
        check_costs({"a": cost})
    with pytest.raises(InputError, match="budget must be a positive number"):
        check_budget(cost, {"a": 1.0})


def test_a_share_of_a_run_needs_costs() -> None:
    with pytest.raises(InputError, match=r"budget must be a whole number of runs, got 2.5: .* needs costs="):
        check_budget(2.5, None)


@pytest.mark.parametrize("wanted", ["a", [], ["a", "a"], [1], 5])
def test_wanted_tasks_are_names(wanted) -> None:
    with pytest.raises(InputError, match="wanted must be names of tasks, each once"):
        check_wanted(wanted)
