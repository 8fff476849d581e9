"""Which strategy a cost stands for."""

import pytest

from paceline.errors import InputError
from paceline.strategy import Dynamic, SingleRun, default_strategy


@pytest.mark.parametrize("cost", [1, 1.0, 1.05, 1.25, 1.37])
def test_one_run_has_no_forks(cost: float) -> None:
    assert default_strategy(cost) == SingleRun()


@pytest.mark.parametrize("cost", [1.375, 1.5, 2.3, 5])
def test_more_than_one_run_is_horizon_at_that_cost(cost: float) -> None:
    assert default_strategy(cost) == Dynamic.horizon(cost=cost)


def test_less_than_one_run_is_refused() -> None:
    with pytest.raises(InputError, match=r"cost must be at least 1.*got 0\.5"):
        default_strategy(0.5)
