"""A fit of the law: it recovers a known law, and starts from an earlier fit."""

import numpy as np
import pytest

from paceline.model.law import LawModel
from paceline.model.law.settings import SEARCH
from paceline.model.law.terms import COUNT
from tests.model.law import example_law


@pytest.fixture(scope="module")
def model() -> LawModel:
    return LawModel.fit(example_law.runs())


def test_the_fit_has_a_draw_of_everything(model: LawModel) -> None:
    fit = model.law
    assert fit.coefficients.shape == (1, COUNT)
    assert fit.exponent_draws.shape == (SEARCH.draws, 4)
    assert fit.coefficient_draws.shape == (SEARCH.draws, 1, COUNT)
    assert fit.residuals.shape == (SEARCH.draws, len(fit.problem.rows.loss))
    assert fit.coefficients.min() >= 0


def test_whitened_residuals_have_about_unit_size(model: LawModel) -> None:
    assert 0.3 < float(np.sqrt(np.mean(model.law.residuals**2))) < 1.5


def test_a_fit_that_starts_from_itself_stays_there(model: LawModel) -> None:
    again = LawModel.fit(example_law.runs(), start=model)
    truth = example_law.loss(example_law.runs()[0].schedule, np.array([1000]))
    for each in (model, again):
        forecast = each.forecast(example_law.runs()[0].schedule, [1000], noise=False)
        assert np.log(forecast.median / truth) == pytest.approx(0.0, abs=0.02)
