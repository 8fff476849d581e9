"""Forecasts of the final value: when they overrule other rules, and what they never do."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import FinalForecast, Fork
from paceline.strategy.final_forecast import is_stable
from paceline.strategy.rate_choosers import RateChoice
from paceline.study import because
from paceline.traces import Objective, Schedule, Trace
from tests.strategy.example_forks import GOAL, make_fork, make_history

OTHER_REASON = because("factor", factor=1.6, fork=0)


@dataclass(frozen=True, slots=True, eq=False)
class KnownForecast(FinalForecast):
    """A forecast that is best at a rate of 0.1, and in which a share of the draws agree on that."""

    agreement: float = 1.0

    def final_values(self, fork, rates):
        best = np.array([-(np.log10(rate / 0.1) ** 2) for rate in rates])
        draws = np.arange(100)[:, None] < 100 * self.agreement
        return np.where(draws, best, -best)


def fork(number: int, rate: float, stop: int = 500, value: float = 1.0) -> Fork:
    return make_fork(number, rate, stop=stop, value=value)


def forecast(*forks: Fork, agreement: float = 1.0) -> KnownForecast:
    return KnownForecast(make_history(*forks), None, agreement)  # pyright: ignore[reportArgumentType]


def rate_of_clone(known: KnownForecast, parent: Fork, otherwise: RateChoice, unchanged: int = 1) -> float:
    return known.choose_for_clone(parent, otherwise, [parent.multiplier], unchanged, 0.45).rate


def test_it_overrules_another_choice_only_if_enough_draws_agree() -> None:
    parent, otherwise = fork(0, 0.2), RateChoice(0.32, OTHER_REASON)
    unsure, sure = forecast(parent, agreement=0.8), forecast(parent)
    assert rate_of_clone(sure, parent, otherwise) == pytest.approx(0.1, rel=0.01)
    assert rate_of_clone(unsure, parent, otherwise) == 0.32
    assert rate_of_clone(unsure, parent, otherwise, unchanged=2) == pytest.approx(0.1, rel=0.01)
    reason = unsure.choose_for_clone(parent, otherwise, [0.2], 1, 0.45).reason
    assert reason == because("unsure", instead=OTHER_REASON)
    reason = sure.choose_for_clone(parent, otherwise, [0.2], 1, 0.45).reason
    assert (reason.kind, reason["probability"], reason["otherwise"]) == ("ends better", 1.0, 0.32)


def test_it_never_goes_above_a_stable_rate_nor_far_nor_near_other_forks() -> None:
    low, brief = fork(0, 0.01), fork(1, 0.1, stop=20)  # the second lived for 2 % of the run
    assert rate_of_clone(forecast(low, brief), low, RateChoice(0.006, OTHER_REASON)) < 0.01 * 1.0001
    stable = fork(1, 0.1)
    otherwise, others = RateChoice(0.016, OTHER_REASON), [0.01, 0.01 * 10**0.45]
    chosen = forecast(low, stable).choose_for_clone(low, otherwise, others, 1, 0.45).rate
    assert chosen == pytest.approx(0.01 * 10**0.35)


def test_the_fork_that_ends_best_is_moved_up_if_enough_draws_agree() -> None:
    forks = [fork(0, 0.5), fork(1, 0.4), fork(2, 0.3), fork(3, 0.1)]

    def order(known: KnownForecast, ranked: list[Fork], place: int) -> list[int]:
        return [fork.id for fork in known.promote_best(ranked, place)]

    assert order(forecast(*forks), forks, 1) == [0, 3, 1, 2]
    assert order(forecast(*forks), forks, 0) == [3, 0, 1, 2]
    assert order(forecast(*forks, agreement=0.9), forks, 1) == [0, 1, 2, 3]
    assert order(forecast(*forks), forks[::-1], 1) == [3, 2, 1, 0]  # it leads anyway
    assert order(forecast(*forks), forks[:1], 1) == [0]


@pytest.mark.parametrize(
    ("mode", "now", "final"), [("min", 0.5, None), ("min", 0.05, 0.09062), ("max", -0.5, None), ("max", 0.5, -0.09062)]
)
def test_a_forecast_by_which_the_leader_ends_worse_than_now_is_a_contradiction(mode, now, final) -> None:
    leader, goal = fork(0, 0.2, value=now), replace(GOAL, objective=Objective(mode))
    known = KnownForecast(make_history(leader, goal=goal), None)  # pyright: ignore[reportArgumentType]
    reason = known.contradiction(leader, 0.34)
    if final is None:
        assert reason is None
    else:
        assert reason == because("contradiction", fork=0, forecast=pytest.approx(final, abs=1e-5), now=now)


def test_it_is_fitted_to_what_all_forks_observed() -> None:
    training, forks = QuadraticTraining(Quadratic(noise=0.5, dims=30), 3), list[Fork]()
    for number, rate in enumerate((0.01, 0.3)):
        schedule = Schedule([rate], [0, 200], 400, "linear")
        rows = [(step, value["raw"]) for step, value in QuadraticTraining(training.problem, 3).advance(schedule, 200)]
        steps, values = (np.array(column) for column in zip(*rows, strict=True))
        trace = Trace(steps, values, schedule, name=str(number))
        forks.append(Fork(number, None, 0, schedule, trace, trace))
    history = make_history(*forks, goal=replace(GOAL, steps=400))
    fitted = FinalForecast.fit(history)
    assert fitted is not None
    finals = fitted.final_values(forks[1], [0.3, 0.001])
    assert finals.shape[1] == 2
    assert np.isfinite(finals).all()
    assert (np.median(finals, axis=0) < 0).all()  # losses, with the sign by which bigger is better


def test_without_enough_to_learn_from_there_is_no_forecast() -> None:
    assert FinalForecast.fit(make_history(make_fork(0, 0.1, stop=10))) is None


def test_a_fork_is_stable_that_trained_at_its_rate_for_some_time_and_did_not_fail() -> None:
    assert is_stable(fork(0, 0.1, stop=60), 1000)
    assert not is_stable(fork(0, 0.1, stop=20), 1000)
