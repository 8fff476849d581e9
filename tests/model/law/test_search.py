"""One fit in progress: the columns of the law, whitening, and relative residuals."""

import numpy as np
import pytest

from paceline.model.law.ancestry import shared_until
from paceline.model.law.rows import rows_of
from paceline.model.law.search import LawSearch, Problem
from paceline.model.law.state import SchedulePieces
from paceline.model.law.terms import CENTRE, terms
from paceline.model.law.units import Units
from paceline.model.linalg import tensor
from tests.model.law import example_law


@pytest.fixture
def problem() -> Problem:
    runs = example_law.runs()
    units = Units.of(runs)
    rows = rows_of(runs, units, ())
    assert rows is not None
    until = np.array([[shared_until(a, b) for b in runs] for a in runs])
    return Problem(rows, units, until, np.eye(1))


def test_columns_interpolate_the_modes(problem: Problem) -> None:
    run, units = example_law.runs()[3], problem.units
    rows = problem.rows
    last = np.flatnonzero(rows.run == 3)[-1]
    pieces = SchedulePieces.of(run.schedule, np.array([round(float(np.exp(rows.log_step[last])))]))
    noise = pieces.noise(tensor(CENTRE[2:3]), units.reference, units.largest)[0]
    exact = terms(tensor(CENTRE), pieces.rate_sum()[0], noise, units.largest)[0].numpy()
    np.testing.assert_allclose(problem.columns(CENTRE)[last], exact, rtol=0.05, atol=1e-3)


def test_whitened_rows_have_unit_covariance(problem: Problem) -> None:
    search = LawSearch(problem)
    search.whiten(search.centre)
    covariance = search.covariance(search.centre)
    np.testing.assert_allclose(search.white @ covariance @ search.white.T, np.eye(len(covariance)), atol=1e-8)


def test_relative_residuals_have_a_speed_of_one_on_average(problem: Problem) -> None:
    search = LawSearch(problem)
    search.whiten(search.centre)
    search.make_relative(CENTRE)
    assert np.exp(np.log(search.points.speed).mean()) == pytest.approx(1.0, abs=0.2)
    np.testing.assert_allclose(search.scale, problem.rows.level, rtol=0.5)


def test_exponents_outside_their_bounds_cost_energy(problem: Problem) -> None:
    search = LawSearch(problem)
    search.whiten(search.centre)
    outside = CENTRE.copy()
    outside[2] = 2.0
    assert search.energy(outside) > search.energy(CENTRE) + 100
