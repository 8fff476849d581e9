"""How a fork gets its next rate."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.strategy import FixedFactor, Fork, Goal, History, ModelQuantile
from paceline.strategy.guards import FailureGuard, MaxChange
from paceline.strategy.rate_choosers import FittedModels, candidate_rates
from paceline.traces import LearningRateRange, Objective, Schedule, Trace
from tests.strategy.example_forks import GOAL, make_fork, make_history, observed_history

# a fixed factor


def direction(*forks: Fork, parent: int, stop: int = 350) -> float:
    """Which way the next challenger of a fork goes, in factors."""
    history, chooser = make_history(*forks), FixedFactor()
    chosen = history.fork(parent)
    choice = chooser.choose(chooser.fit(history, [0, 1000]), chosen, stop, 0.5, [chosen.multiplier], ())
    assert choice.reason.kind == "factor"
    assert choice.reason["factor"] == pytest.approx(choice.rate / chosen.multiplier)
    return round(np.log(choice.rate / chosen.multiplier) / np.log(1.6))


def test_the_first_challenger_goes_down() -> None:
    assert direction(make_fork(0, 0.01), parent=0) == -1


def test_if_the_last_challenger_lost_the_next_goes_the_other_way() -> None:
    parent, lower, higher = make_fork(0, 0.01), make_fork(1, 0.006, parent=0), make_fork(2, 0.016, parent=0)
    assert direction(parent, lower, parent=0) == 1
    assert direction(parent, lower, higher, parent=0) == -1


def test_a_challenger_that_leads_is_followed_in_its_direction() -> None:
    assert direction(make_fork(0, 0.01), make_fork(1, 0.016, parent=0), parent=1) == 1
    assert direction(make_fork(0, 0.01), make_fork(1, 0.006, parent=0), parent=1) == -1


def test_the_last_challenger_goes_down_since_only_the_tail_is_left() -> None:
    assert direction(make_fork(0, 0.01), make_fork(1, 0.016, parent=0), parent=1, stop=1000) == -1


def test_two_challengers_of_a_round_go_both_ways_and_stay_within_the_bounds() -> None:
    history, chooser = make_history(make_fork(0, 0.9)), FixedFactor()
    models, parent, rates = chooser.fit(history, [0, 1000]), history.fork(0), [0.9]
    for _ in range(2):
        rates.append(chooser.choose(models, parent, 350, 0.5, rates, ()).rate)
    assert rates[1:] == pytest.approx([0.9 / 1.6, 0.9 / 1.6**2])  # up would be at the bound, which is taken


def test_a_factor_of_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"factor must be above 1, got 1\.0"):
        FixedFactor(1.0)


# candidates


def test_candidates_cover_the_bounds_and_hold_the_parents_rate() -> None:
    rates = candidate_rates(GOAL, make_fork(0, 0.0123))
    assert (rates[0], rates[-1]) == (pytest.approx(1e-4), pytest.approx(1.0))
    assert 0.0123 in rates
    assert len(rates) == 122
    assert (np.diff(rates) > 0).all()


# the trace model


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_the_model_takes_a_rate_near_the_best_and_shows_how_it_was_chosen(transform) -> None:
    history, chooser = observed_history([0.001, 0.006, 0.03, 0.2, 1.0], transform=transform), ModelQuantile()
    models = chooser.fit(history, [0, 200, 1000])
    parent = history.fork(2)
    choice = chooser.choose(models, parent, 400, 0.5, [parent.multiplier], (MaxChange(1.0),))
    assert 0.006 < choice.rate < 0.2
    shown = choice.details["candidates"]
    score = np.where(shown["admitted"], -shown["quantile"], -np.inf)  # smaller is better
    assert choice.rate == shown["rates"][np.argmax(score)]
    assert (choice.reason.kind, choice.reason["alpha"], choice.reason["step"]) == ("best quantile", 0.5, 400)
    assert choice.reason["candidates"] == shown["admitted"].sum() < len(shown["rates"])
    assert "p_fail" not in choice.details


def test_after_a_failure_its_probability_is_shown_too() -> None:
    history, chooser = observed_history([0.001, 0.006, 0.03, 0.2, 1.0], failing=(1.0,)), ModelQuantile()
    models = chooser.fit(history, [0, 200, 1000])
    assert models.failures is not None
    parent = history.fork(2)
    shown = chooser.choose(models, parent, 400, 0.5, [], ()).details["p_fail"]
    assert shown["probability"][-1] > shown["probability"][0]


def test_in_sequence_a_choice_assumes_the_median_outcome_of_those_before() -> None:
    history, chooser = observed_history([0.001, 0.006, 0.03, 0.2, 1.0]), ModelQuantile(in_sequence=True)
    models, parent = chooser.fit(history, [0, 200, 1000]), history.fork(2)
    first = chooser.choose(models, parent, 400, 0.9, [], ())
    after = chooser.models_after(models, parent, 400, first.rate)
    second = chooser.choose(after, parent, 400, 0.9, [first.rate], ())
    assert second.rate != first.rate
    assert second.details["candidates"]["quantile"].min() > first.details["candidates"]["quantile"].min()
    assert ModelQuantile().models_after(models, parent, 400, first.rate) is models
    nothing = FittedModels(history)
    assert chooser.models_after(nothing, parent, 400, 0.1) is nothing


def test_settings_that_came_later_are_left_out_as_they_were_before() -> None:
    before = {"name": "model quantile", "link": "linear", "order": 1, "clock": "step", "inducing": 100}
    assert ModelQuantile().to_json() == before
    later = {"anchor_noise": False, "random_effect": False, "in_sequence": True}
    assert ModelQuantile(**later).to_json() == before | later


def test_where_no_rate_is_safe_the_least_risky_is_taken_and_the_reason_says_so() -> None:
    rates = [0.001, 0.006, 0.03, 0.2, 1.0]
    history, chooser = observed_history(rates, failing=rates[1:]), ModelQuantile()
    models, parent = chooser.fit(history, [0, 200, 1000]), history.fork(0)
    choice = chooser.choose(models, parent, 400, 0.01, [], (MaxChange(1.0), FailureGuard()))
    shown = choice.details["p_fail"]
    near = np.abs(np.log10(shown["rates"] / parent.multiplier)) <= 1.0
    assert (shown["probability"] > 0.01).all()
    assert choice.rate == shown["rates"][near][np.argmin(shown["probability"][near])]
    assert (choice.reason.kind, choice.reason["limit"]) == ("least risky", 0.01)
    assert choice.reason["probability"] == shown["probability"][near].min()
    unguarded = chooser.choose(models, parent, 400, 0.01, [], (MaxChange(1.0),))
    assert unguarded.reason.kind == "best quantile"


def test_without_a_model_a_fixed_factor_is_used_and_the_reason_says_so() -> None:
    history, chooser = make_history(make_fork(0, 0.01)), ModelQuantile()
    choice = chooser.choose(FittedModels(history), history.fork(0), 350, 0.5, [0.01], ())
    instead = FixedFactor().choose(FittedModels(history), history.fork(0), 350, 0.5, [0.01], ())
    assert choice.rate == instead.rate
    assert (choice.reason.kind, choice.reason["instead"]) == ("no model", instead.reason)


def test_a_history_in_which_every_run_failed_at_once_gives_no_model() -> None:
    goal = Goal(LearningRateRange(1e-3, 1.0), 1000, Objective("min", "identity", "raw"))
    schedule = Schedule([0.1], [0, 200], 1000, "constant")
    trace = Trace(np.array([0, 10]), np.array([1.0, np.nan]), schedule, objective=goal.objective, failed=True)
    history = History(goal, (Fork(0, None, 0, schedule, trace, trace, alive=False),), 1)
    assert ModelQuantile().fit(history, [0, 200, 1000]).model is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModelQuantile(link="cubic"), "cubic"),
        (lambda: ModelQuantile(order=4), "expected order 1, 2 or 3 and inducing above 0, got 4 and 100"),
        (lambda: ModelQuantile(inducing=0), "got 1 and 0"),
    ],
)
def test_wrong_settings_of_the_model_are_refused_at_once(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
