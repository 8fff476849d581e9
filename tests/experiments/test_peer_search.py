"""Tuners of others in this process spend exactly their budget."""

import pytest

from benchmarks._problems import Problem, quadratic

TINY = Problem("tiny", quadratic(1.0, 20), 200, 0.1, 2, network=False)


@pytest.mark.parametrize("cost", [2.3, 5])
def test_trials_of_optuna_together_take_exactly_the_budget(cost: float) -> None:
    pytest.importorskip("optuna")
    from experiments._peer_search import run_optuna

    found = run_optuna(TINY, 0, cost)
    assert found["cost"] == pytest.approx(cost)
    assert found["trials"] > found["ended"] >= 1
