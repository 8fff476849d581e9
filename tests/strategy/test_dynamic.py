"""The rules of `horizon`: who goes on in any case, which way a challenger goes, and what a plan costs."""

import numpy as np
import pytest

from paceline import Tuner
from paceline.shapes import Constant
from paceline.strategy import Dynamic, Fork, Goal, History
from paceline.strategy.choose import Blind
from paceline.strategy.plan import horizon_plan, side_by_side
from paceline.study import Interval
from paceline.traces import LearningRateRange, Objective, Schedule

GOAL = Goal(LearningRateRange(1e-4, 1.0), 1000, Objective())


def fork(number: int, rate: float, parent: int | None = None, start: int = 0) -> Fork:
    return Fork(number, parent, start, Schedule([rate], [0, 200], 1000, Constant()))


def side(*forks: Fork, parent: int, stop: int = 350) -> float:
    """Which way the next blind challenger of a fork goes, in factors."""
    history, chooser = History(GOAL, forks), Blind()
    chosen = history.fork(parent)
    choice = chooser.choose(chooser.learn(history, [0, 1000]), chosen, stop, 0.5, [chosen.multiplier], ())
    return round(np.log(choice.rate / chosen.multiplier) / np.log(1.6))


def test_the_first_challenger_goes_down() -> None:
    assert side(fork(0, 0.01), parent=0) == -1


def test_where_the_last_challenger_lost_the_next_goes_the_other_way() -> None:
    assert side(fork(0, 0.01), fork(1, 0.006, parent=0), parent=0) == 1
    assert side(fork(0, 0.01), fork(1, 0.006, parent=0), fork(2, 0.016, parent=0), parent=0) == -1


def test_a_challenger_that_leads_is_followed_in_its_direction() -> None:
    assert side(fork(0, 0.01), fork(1, 0.016, parent=0), parent=1) == 1
    assert side(fork(0, 0.01), fork(1, 0.006, parent=0), parent=1) == -1


def test_the_last_challenger_goes_down_since_only_the_tail_is_left() -> None:
    assert side(fork(0, 0.01), fork(1, 0.016, parent=0), parent=1, stop=1000) == -1


def test_two_challengers_of_a_round_go_both_ways_and_stay_within_the_bounds() -> None:
    history, chooser = History(GOAL, (fork(0, 0.9),)), Blind()
    knowledge, parent = chooser.learn(history, [0, 1000]), history.fork(0)
    rates = [0.9]
    for _ in range(2):
        rates.append(chooser.choose(knowledge, parent, 350, 0.5, rates, ()).rate)
    assert rates[1:] == pytest.approx([0.9 / 1.6, 0.9 / 1.6**2])  # up would be at the bound, which is taken


def driven(value_of, cost: float = 2.3) -> tuple[Tuner, list[list[Interval]]]:
    """A study driven by hand; `value_of(proposal)` is constant over an interval."""
    tuner, rounds = Tuner(lr=(1e-4, 1.0), steps=1000, strategy=Dynamic.horizon(cost=cost)), []
    while (proposals := tuner.ask()) is not None:
        rounds.append(proposals)
        for p in proposals:
            value = value_of(p)
            tuner.tell(p, [p.stop], {"raw": [value], "averaged": [value]})
    return tuner, rounds


def distance(p: Interval, best: float) -> float:
    return 1.0 + abs(np.log10(p.schedule.multipliers[-1] / best))


def test_a_higher_rate_that_leads_takes_over_and_a_lower_one_does_not() -> None:
    # the best of the grid is 0.018; what is truly best lies above it, then below it
    _, rounds = driven(lambda p: distance(p, 0.05 if p.start >= 200 else 0.02))
    winners = [proposals[0].schedule.multipliers[-1] for proposals in rounds[4:]]
    assert winners[-1] > winners[0]
    _, rounds = driven(lambda p: distance(p, 0.006 if p.start >= 200 else 0.02))
    first = rounds[4][0].fork
    assert all(first in [p.fork for p in proposals] for proposals in rounds[4:])


def test_who_leads_before_the_first_challenge_is_not_protected_for_it() -> None:
    _, rounds = driven(lambda p: distance(p, 0.01 if p.start >= 100 else 0.3), cost=5)
    led = {proposals[0].start: proposals[0].fork for proposals in rounds}
    last = {p.fork for p in rounds[-1]}
    assert led[100] != led[200]
    assert led[100] not in last
    assert led[200] in last


def test_a_leader_that_is_moved_on_is_not_said_to_be_behind() -> None:
    tuner, rounds = driven(lambda p: distance(p, 0.006 if p.start >= 200 else 0.02))
    led = {p.parent for proposals in rounds for p in proposals if p.parent is not None}
    assert any(not tuner.history.fork(number).alive for number in led)


@pytest.mark.parametrize("steps", [401, 1000, 1003, 4999])
def test_no_plan_costs_more_than_it_says(steps: int) -> None:
    for cost in np.arange(1.1, 9.0, 0.05):
        assert horizon_plan(float(cost)).total_steps(steps) <= cost * steps
    for forks in range(1, 12):
        assert side_by_side(forks).total_steps(steps) == forks * steps


def test_forks_that_look_alike_are_kept_around_the_middle_of_the_bounds() -> None:
    """As an accuracy is before anything is learnt: neither the lowest rates nor the highest tell anything."""
    tuner = Tuner(lr=(1e-4, 1.0), steps=400, cost=2.3, mode=Objective("max", "identity"))
    for p in tuner.ask() or []:
        tuner.tell(p, [p.stop], {"raw": [0.1], "averaged": [0.1]})
    assert sorted(p.fork for p in tuner.ask() or []) == [1, 2, 3, 4, 5]
