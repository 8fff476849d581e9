"""What a run of a new task does next."""

import numpy as np
import pytest

from paceline.strategy.newtask.planner import Continuation, fork_alpha, planned_rates
from tests.strategy.newtask.example_family import SMALL, SPACE, NewTaskExample


def test_forks_maximise_different_quantiles(new: NewTaskExample) -> None:
    for forks in (2, 3, 4):
        settings = new.strategy(forks=forks).settings
        for done in range(3):
            alphas = [fork_alpha(settings, 3, done, fork) for fork in range(forks)]
            assert all(0.05 <= alpha <= 0.95 for alpha in alphas)
            assert min(np.diff(sorted(alphas))) > 0.5 / forks
    assert [fork_alpha(SMALL, 3, done) for done in range(3)] == pytest.approx([0.7, 0.5, 0.3])
    universal = new.strategy(method="universal").settings
    assert [fork_alpha(universal, 3, done) for done in range(3)] == pytest.approx([0.3] * 3)


def test_a_plan_has_a_rate_for_each_interval_to_come() -> None:
    plan = Continuation(None, 1, 0.5, (0.0, 1.0), 0.0, 0.0)
    assert planned_rates(SPACE, plan, 1) == pytest.approx([1e-3, 1.0])
    assert planned_rates(SPACE, plan, 2) == pytest.approx([1.0])
