"""Both models answer the same calls."""

import numpy as np
import pytest

from paceline import Schedule, TraceModel
from paceline.model import Forecaster, LawModel
from tests.model.law import example_law


@pytest.fixture(scope="module", params=["TraceModel", "LawModel"])
def model(request: pytest.FixtureRequest) -> Forecaster:
    runs = example_law.runs()
    return TraceModel.fit(runs, intervals=5) if request.param == "TraceModel" else LawModel.fit(runs)


def test_forecasts_a_new_run_and_one_that_goes_on(model: Forecaster) -> None:
    schedule, run = Schedule.constant(0.03, 1000), example_law.runs()[2].head(20)
    whole = model.forecast(schedule, [500, 1000], draws=200)
    assert whole.steps.tolist() == [500, 1000]
    assert whole.draws.shape == (200, 2)
    rest = model.forecast(run.schedule, [500], start=run, draws=200, noise=False)
    assert np.isfinite(rest.draws).all()
    assert rest.median[0] < run.values[0]


def test_orders_quantiles_by_improvement(model: Forecaster) -> None:
    run = example_law.runs()[2].head(20)
    careful, bold = (model.quantile(alpha, [0.01, 0.03], start=run, stop=500) for alpha in (0.1, 0.9))
    assert careful.shape == bold.shape == (2,)
    assert np.all(careful > bold)  # a loss: the optimistic value is the lower one


def test_mean_law_is_short_for_the_law_model() -> None:
    runs = example_law.runs()
    short, long = TraceModel.fit(runs, mean="law"), LawModel.fit(runs)
    assert type(short) is LawModel
    np.testing.assert_array_equal(short.law.coefficient_draws, long.law.coefficient_draws)
