"""Both presets: which forks go on, which are protected, and when the forecast of the end is used."""

import json
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from paceline import Tuner, tune
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Dynamic, FinalForecast, FixedFactor, ForkPlan, History, ModelQuantile, Rung
from paceline.strategy.dynamic import GREEDY_SEPARATION, paper_alphas
from paceline.strategy.guards import FailureGuard, MaxChange, MinSeparation
from paceline.study import Decided, Dropped
from tests.strategy.example_forks import distance, tune_by_hand

PROBLEM = Quadratic(noise=0.5, dims=30)


def study(strategy: Dynamic) -> tuple[float, list[Decided]]:
    """The final value of a study, and its decisions."""
    decisions = list[Decided]()
    result = tune(
        lambda: QuadraticTraining(PROBLEM, 3),
        steps=400,
        lr=(1e-3, 1.0),
        strategy=strategy,
        on_event=lambda event: decisions.append(event) if isinstance(event, Decided) else None,
    )
    assert result.value is not None
    return result.value, decisions


# which forks go on


def test_a_higher_rate_that_leads_takes_over_protection_and_a_lower_one_does_not() -> None:
    # the best of the grid is 0.018; what is truly best lies above it, then below it
    _, rounds = tune_by_hand(lambda p: distance(p, 0.05 if p.start >= 200 else 0.02))
    winners = [intervals[0].multiplier for intervals in rounds[4:]]
    assert winners[-1] > winners[0]
    _, rounds = tune_by_hand(lambda p: distance(p, 0.006 if p.start >= 200 else 0.02))
    first = rounds[4][0].fork
    assert all(first in [interval.fork for interval in intervals] for intervals in rounds[4:])


def test_a_lead_before_the_first_challenge_protects_nobody() -> None:
    strategy = Dynamic.horizon(cost=5, judge_by="now")
    _, rounds = tune_by_hand(lambda p: distance(p, 0.01 if p.start >= 100 else 0.3), strategy=strategy)
    leaders = {intervals[0].start: intervals[0].fork for intervals in rounds}
    last = {interval.fork for interval in rounds[-1]}
    assert leaders[100] != leaders[200]
    assert leaders[100] not in last
    assert leaders[200] in last


def test_a_leader_whose_clone_goes_on_is_not_behind() -> None:
    tuner, rounds = tune_by_hand(lambda p: distance(p, 0.006 if p.start >= 200 else 0.02))
    dropped = {event.fork: event for event in tuner.study.events if isinstance(event, Dropped)}
    cloned = [interval for intervals in rounds for interval in intervals if interval.parent in dropped]
    at_once = [interval for interval in cloned if dropped[interval.parent].step == interval.start]
    assert at_once
    for interval in at_once:
        reason = dropped[interval.parent].reason
        assert (reason.kind, reason["clone"]) == ("cloned", interval.fork)


def test_forks_with_equal_values_are_kept_around_the_middle_of_the_bounds() -> None:
    """As accuracies are before anything is learnt: neither the lowest rates nor the highest show anything."""
    tuner = Tuner(lr=(1e-4, 1.0), steps=400, cost=2.3, mode="max")
    for interval in tuner.ask() or []:
        tuner.tell(interval, [interval.stop], {"raw": [0.1], "averaged": [0.1]})
    assert sorted(interval.fork for interval in tuner.ask() or []) == [1, 2, 3, 4, 5]


def test_with_keep_each_every_run_goes_on_at_a_new_rate() -> None:
    strategy = Dynamic.greedy(forks=3, intervals=3, keep_each=True)
    tuner, rounds = tune_by_hand(lambda p: distance(p, 0.02), strategy=strategy)
    assert [sorted(interval.fork for interval in intervals) for intervals in rounds] == [[0, 1, 2]] * 3
    assert all(interval.parent is None for intervals in rounds for interval in intervals)
    assert not any(isinstance(event, Dropped) for event in tuner.study.events)
    kinds = [reason.kind for decision in tuner.study.decisions[1:3] for reason in decision.reasons]
    assert kinds.count("new rate") == 6


def test_with_greedy_all_forks_become_clones_of_the_best() -> None:
    tuner, rounds = tune_by_hand(lambda p: distance(p, 0.02), strategy=Dynamic.greedy(forks=3, intervals=3))
    for before, after in pairwise(rounds):
        best = min(before, key=lambda interval: distance(interval, 0.02)).fork
        assert {interval.parent for interval in after} == {best}
    assert tuner.result.fork == min(rounds[-1], key=lambda interval: distance(interval, 0.02)).fork


def test_between_10_and_50_percent_forks_that_go_on_have_their_rates_corrected() -> None:
    _, decisions = study(Dynamic.horizon(cost=2.3))
    corrected = {event.step for event in decisions for r in event.reasons if r.kind == "new rate"}
    assert corrected
    assert corrected <= {40, 52, 62, 80, 92, 112, 140, 164, 200}
    never = study(replace(Dynamic.horizon(cost=2.3), corrects_rates=False))[1]
    assert not [r for event in never for r in event.reasons if r.kind == "new rate"]


def test_with_greedy_the_rates_of_a_decision_differ() -> None:
    for keep_each in (False, True):
        strategy = Dynamic.greedy(forks=4, intervals=5, keep_each=keep_each)
        _, rounds = tune_by_hand(lambda p: distance(p, 0.02), strategy=strategy)
        for intervals in rounds[1:]:
            rates = np.sort(np.log10([interval.multiplier for interval in intervals]))
            assert np.diff(rates).min() >= GREEDY_SEPARATION - 1e-9


# studies of 0.1.0


def test_greedy_goes_on_as_0_1_0_began_it() -> None:
    for forks in (1, 3):
        former = Dynamic.greedy(forks=forks, min_separation=0, in_sequence=False, alphas=paper_alphas(forks))
        settings = json.loads(json.dumps(former.to_json()))
        assert Dynamic.greedy(forks=forks).as_begun(settings) == former
        for other in (Dynamic.paper(forks=forks), Dynamic.greedy(forks=forks, order=2), Dynamic.horizon()):
            assert other.as_begun(settings) is other
    present = Dynamic.greedy()
    assert present.as_begun(json.loads(json.dumps(present.to_json()))) is present


# first rates


def test_first_rates_are_a_grid_or_the_users_own() -> None:
    def first_rates(strategy: Dynamic) -> list[float]:
        return [interval.multiplier for interval in Tuner(lr=(1e-4, 1.0), steps=1000, strategy=strategy).ask() or []]

    assert first_rates(Dynamic.greedy(forks=3)) == pytest.approx([1e-4, 1e-2, 1.0])
    assert first_rates(Dynamic.greedy(forks=1)) == pytest.approx([1e-2])
    assert first_rates(Dynamic.horizon(forks=2)) == pytest.approx([1e-3, 1e-1])
    assert first_rates(Dynamic.horizon(forks=2, initial_rates=(0.02, 0.5))) == pytest.approx([0.02, 0.5])


def test_first_rates_beyond_the_bounds_are_refused() -> None:
    with pytest.raises(InputError, match=r"initial_rates must lie within the bounds 0.0001 to 1, got \(0.1, 2.0\)"):
        Tuner(lr=(1e-4, 1.0), steps=1000, strategy=Dynamic.horizon(forks=2, initial_rates=(0.1, 2.0)))


# the forecast of the end


def test_at_which_costs_the_forecast_of_the_end_is_the_default() -> None:
    judged_by = [Dynamic.horizon(cost=cost).judge_by for cost in (1.5, 2.3, 3.2, 4, 5)]
    assert judged_by == ["now", "now", "now", "final", "final"]
    assert {Dynamic.horizon(forks=forks).judge_by for forks in (1, 5)} == {"now"}


def test_of_several_clones_the_forecast_chooses_only_the_first() -> None:
    _, decisions = study(Dynamic.horizon(cost=5))
    clones = [[r for r in event.reasons if r.kind == "clone"] for event in decisions if "forecast" in event.details]
    assert clones
    for first, second in clones:
        assert first["why"].kind in ("ends better", "unsure")
        assert second["why"].kind == "factor"


@dataclass(frozen=True, slots=True, eq=False)
class Pessimist(FinalForecast):
    """Every fork ends far worse than it is now."""

    def final_values(self, fork, rates):
        return np.full((100, len(rates)), -1e3)


@dataclass(frozen=True, slots=True)
class PessimistStrategy(Dynamic):
    def _fit_final_forecast(self, history: History) -> FinalForecast | None:
        return Pessimist(history, None)  # pyright: ignore[reportArgumentType]


def test_a_forecast_that_contradicts_the_values_is_not_used_and_the_study_says_so() -> None:
    horizon = Dynamic.horizon(cost=5)
    fields = {name: getattr(horizon, name) for name in horizon.__dataclass_fields__}
    value, decisions = study(PessimistStrategy(**fields))
    contradictions = [reason for event in decisions for reason in event.reasons if reason.kind == "contradiction"]
    assert len(contradictions) == 3  # at 35, 50 and 70 %
    assert value == study(Dynamic.horizon(cost=5, judge_by="now"))[0]


@pytest.mark.parametrize("cost", [2.3, 3.2])
def test_a_study_shows_its_forecasts_of_the_end_and_repeats_itself(cost: float) -> None:
    strategy = Dynamic.horizon(cost=cost, judge_by="final")
    (value, decisions), (again, _) = study(strategy), study(strategy)
    assert value == again
    bands = [band for event in decisions for band in event.details.get("forecast", [])]
    assert bands
    assert all((band["weights"], band["steps"][-1]) == ("raw", 400) for band in bands)
    reasons = [reason["why"].kind for event in decisions for reason in event.reasons if "why" in reason.data]
    assert {"ends better", "unsure"} & set(reasons)


# settings


def test_the_paper_is_the_printed_model_and_nothing_else() -> None:
    paper = Dynamic.paper(forks=2)
    assert (paper.alphas, paper.weights, paper.transform) == ((0.25, 0.75), "raw", "identity")
    assert Dynamic.paper().alphas == pytest.approx((0.1, 0.3, 0.5, 0.7, 0.9))
    assert Dynamic.paper(forks=1).alphas == (0.75,)
    assert Dynamic.paper(forks=1, alphas=(0.5,)).alphas == (0.5,)
    assert paper.chooser == ModelQuantile(anchor_noise=False, random_effect=False)
    assert paper.guards == (MaxChange(1.0), FailureGuard())


def test_the_presets() -> None:
    greedy, horizon = Dynamic.greedy(forks=2), Dynamic.horizon()
    assert (greedy.weights, greedy.transform) == ("raw", "identity")
    assert greedy.chooser == ModelQuantile(in_sequence=True)
    assert greedy.guards == (MaxChange(1.0), MinSeparation(GREEDY_SEPARATION), FailureGuard())
    changed = Dynamic.greedy(min_separation=0, alphas=(0.1, 0.9), random_effect=False, anchor_noise=False)
    assert changed.guards == (MaxChange(1.0), FailureGuard())
    assert changed.alphas == (0.1, 0.9)
    assert changed.chooser == ModelQuantile(in_sequence=True, random_effect=False, anchor_noise=False)
    assert (horizon.weights, horizon.transform, horizon.chooser) == ("averaged", "log", FixedFactor())
    corrects = [Dynamic.horizon(cost=cost).corrects_rates for cost in (1.5, 2.3, 3.2, 4, 5)]
    assert corrects == [True, True, True, False, False]
    assert not Dynamic.horizon(forks=2).corrects_rates


def test_one_run_may_repeat_an_interval_that_failed() -> None:
    goal = Tuner(lr=(1e-4, 1.0), steps=400, strategy=Dynamic.horizon(forks=1)).goal
    one = replace(Dynamic.horizon(forks=2), plan=ForkPlan(1, (Rung(0.25, 1),)))
    assert one.total_steps(goal) == 400 + 300
    assert Dynamic.horizon(forks=2).total_steps(goal) == 800


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dynamic.horizon(judge_by="later"), 'judge_by must be "now" or "final", got \'later\''),
        (lambda: Dynamic.horizon(initial_rates=(0.1,)), "initial_rates must name 8 rates, one per fork, got 1"),
        (lambda: replace(Dynamic.horizon(), alphas=()), r"alphas must be quantile orders in \(0, 1\), got \(\)"),
        (lambda: replace(Dynamic.horizon(), alphas=(0.5, 1.0)), "alphas must be quantile orders"),
        (lambda: Dynamic.horizon(max_change=0.0), "max_change must be positive"),
        (lambda: Dynamic.greedy(min_separation=-0.1), r"min_separation must be positive, in decades, got -0\.1"),
    ],
)
def test_wrong_settings_are_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
