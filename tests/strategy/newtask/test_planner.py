"""What a run of a new task does next."""

import numpy as np
import pytest
import torch

from paceline.errors import InputError
from paceline.settings import NewTaskSettings
from paceline.strategy.future_runs import final_mean
from paceline.strategy.newtask.planner import Continuation, fork_alpha, planned_rates
from tests.strategy.newtask.example_family import SEARCH, SMALL, SPACE, NewTaskExample, run_new_task


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


def test_the_papers_universal_schedule_has_the_best_mean_over_the_hull(new: NewTaskExample) -> None:
    one_dimension = NewTaskSettings.universal(measure="gaussian", locations=6, models=2, search=SEARCH)
    assert (one_dimension.statistic, one_dimension.method, one_dimension.cold_start) == ("mean", "universal", False)
    assert NewTaskSettings.universal().prior == "hull"
    (plan,) = (
        r for r in run_new_task(new.strategy(one_dimension), most=0).study.decisions[0].reasons if r.kind == "plan"
    )
    assert plan["alpha"] is None
    assert "which has the best mean of the final value" in str(plan)
    with pytest.raises(InputError, match="several forks differ in their quantile, got 2"):
        NewTaskSettings(statistic="mean", forks=2)


def test_the_mean_is_that_of_all_draws() -> None:
    y = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 4, 5, 6)))
    np.testing.assert_allclose(final_mean(y), y.numpy()[..., -1].mean((0, 2)))
