"""Which of the candidate rates may be chosen."""

from dataclasses import replace

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.strategy import ModelQuantile
from paceline.strategy.guards import (
    FailureGuard,
    GuardContext,
    MaxChange,
    MinSeparation,
    allowed_candidates,
    failure_probability,
)
from paceline.strategy.rate_choosers import FittedModels
from tests.strategy.example_forks import observed_history

RATES = np.array([1e-3, 3e-3, 1e-2, 3e-2, 1e-1])
CONTEXT = GuardContext(
    parent_rate=1e-2, parent_value=0.5, other_rates=(1e-2, 1e-1), alpha=0.5, model=None, failures=None
)


def test_a_change_is_limited_on_both_sides_and_the_limit_is_allowed() -> None:
    assert MaxChange(1.0).allows(RATES, CONTEXT).tolist() == [True] * 5
    assert MaxChange(0.5).allows(RATES, CONTEXT).tolist() == [False, False, True, True, False]
    assert MaxChange(0.1).allows(RATES, CONTEXT).tolist() == [False, False, True, False, False]


def test_a_rate_keeps_its_distance_from_those_of_other_forks() -> None:
    assert MinSeparation(0.5).allows(RATES, CONTEXT).tolist() == [True, True, False, False, False]
    assert MinSeparation(0.12).allows(RATES, CONTEXT).tolist() == [True, True, False, True, False]
    alone = replace(CONTEXT, other_rates=())
    assert MinSeparation(0.12).allows(RATES, alone).all()  # nothing speaks against the rate of the parent


@pytest.fixture(scope="module")
def models() -> FittedModels:
    """Models of runs of which the one at the highest rate failed."""
    return ModelQuantile().fit(observed_history([0.001, 0.006, 0.03, 0.2, 1.0], failing=(1.0,)), [0, 200, 1000])


def test_a_higher_order_of_the_quantile_allows_more_probable_failures(models: FittedModels) -> None:
    assert models.model is not None
    assert models.failures is not None
    context = replace(CONTEXT, model=models.model, failures=models.failures)
    rates = np.geomspace(1e-3, 1.0, 50)
    probability = models.failures.probability(models.model.failure_inputs(CONTEXT.parent_value, rates))
    assert probability[-1] > probability[0]
    orders = np.quantile(probability, [0.2, 0.5, 0.8])
    allowed = [FailureGuard().allows(rates, replace(context, alpha=float(alpha))) for alpha in orders]
    assert [int(row.sum()) for row in allowed] == [10, 25, 40]
    assert allowed[1].tolist() == (probability < orders[1]).tolist()


def test_nothing_is_excluded_before_anything_has_failed(models: FittedModels) -> None:
    assert FailureGuard().allows(RATES, CONTEXT).all()
    assert FailureGuard().allows(RATES, replace(CONTEXT, model=models.model)).all()


def test_if_no_candidate_is_left_guards_are_dropped_from_the_last() -> None:
    rates = np.array([0.005, 0.01, 0.02])
    context = GuardContext(0.01, 0.5, (0.01,), 0.5, None, None)
    near, apart = MaxChange(0.1), MinSeparation(0.2)
    assert allowed_candidates(rates, context, (near, apart)).tolist() == [False, True, False]  # `apart` is dropped
    assert allowed_candidates(rates, context, (apart, near)).tolist() == [True, False, True]
    assert allowed_candidates(rates, context, (MinSeparation(9.0),)).tolist() == [True, True, True]
    assert allowed_candidates(rates, context, ()).all()


def test_other_guards_are_dropped_for_a_safe_rate_and_the_failure_guard_never_is(models: FittedModels) -> None:
    context = replace(CONTEXT, parent_rate=1.0, model=models.model, failures=models.failures)
    rates = np.geomspace(1e-3, 1.0, 50)
    risk, near = failure_probability(rates, context), MaxChange(0.2)
    limit = float(risk[near.allows(rates, context)].min())  # too low for all rates near the parent's
    assert (risk < limit).any()
    for guards in ((near, FailureGuard()), (FailureGuard(), near)):
        allowed = allowed_candidates(rates, replace(context, alpha=limit), guards)
        assert allowed.tolist() == (risk < limit).tolist()


def test_if_no_rate_is_safe_the_least_risky_that_other_guards_allow_is_left(models: FittedModels) -> None:
    context = replace(CONTEXT, parent_rate=1.0, alpha=1e-9, model=models.model, failures=models.failures)
    rates = np.geomspace(1e-3, 1.0, 50)
    risk, near = failure_probability(rates, context), MaxChange(0.2)
    least = np.where(near.allows(rates, context), risk, np.inf)
    assert risk.min() < least.min()
    allowed = allowed_candidates(rates, context, (near, FailureGuard()))
    assert allowed.tolist() == (least == least.min()).tolist()
    assert allowed.sum() == 1
    everywhere = allowed_candidates(rates, context, (FailureGuard(), MaxChange(0.2), MinSeparation(9.0)))
    assert everywhere.tolist() == allowed.tolist()  # the gap cannot be kept, the change can


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="max_change must be positive, in decades, got 0"):
        MaxChange(0.0)
