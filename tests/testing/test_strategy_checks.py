"""The check passes our own strategies, and finds the fault in each broken one."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest

from paceline import Schedule
from paceline.strategy import Decision, Dynamic, Goal, History, MultiTask, Strategy, default_strategy
from paceline.study import Interval
from paceline.testing import ConformanceError, check_strategy, strategy_checks
from tests.quick_families import BOUNDS, NOISES, QUICK, STEPS, FamilySettings
from tests.tuner.toy_study import STRATEGIES

FITS_THE_LAW = {"horizon-1.5", "horizon-5", "model", "model-5"}  # the check makes each of many decisions twice


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in FITS_THE_LAW else ()) for name in STRATEGIES]
)
def test_our_own_strategies_conform(name: str) -> None:
    check_strategy(lambda: STRATEGIES[name])


def test_a_single_run_conforms() -> None:
    check_strategy(lambda: default_strategy(1.0))


def test_the_default_conforms_in_a_long_run_too() -> None:
    check_strategy(Dynamic.horizon, steps=20_000, lr=(1e-5, 1.0), seed=3)


def test_strategies_of_families_conform() -> None:
    settings = FamilySettings(**{**QUICK, "budget": 4, "initial": 3, "batch": 2})
    check_strategy(lambda: MultiTask(settings), steps=STEPS, lr=BOUNDS, tasks=list(NOISES))


class Halving(Strategy):
    """Four rates; half-way the better two go on, and the best is cloned at half its rate."""

    rates = (1e-3, 3e-3, 1e-2, 3e-2)

    def to_json(self) -> dict[str, Any]:
        return {"strategy": "halving", "rates": list(self.rates)}

    def total_steps(self, goal: Goal) -> int:
        return 4 * goal.steps

    def propose(self, history: History) -> Decision:
        steps, number = history.goal.steps, history.round + 1
        if not history.forks:
            return Decision(tuple(self.first(fork, rate, steps) for fork, rate in enumerate(self.rates)))
        if not history.alive:
            return Decision(reasons=("every rate failed",))
        best = history.ranked()[0]
        if best.schedule.change_points[-1] == steps:
            return Decision(winner=best.id, reasons=("the lowest loss",))
        going_on, others = history.ranked()[:2], history.ranked()[2:]
        intervals = [
            Interval(f.id, None, steps // 2, steps, f.schedule.extend(f.multiplier, steps), number) for f in going_on
        ]
        clone = Interval(4, best.id, steps // 2, steps, best.schedule.extend(best.multiplier / 2, steps), number)
        return Decision((*intervals, clone), tuple((fork.id, "behind") for fork in others))

    def first(self, fork: int, rate: float, steps: int) -> Interval:
        return Interval(fork, None, 0, steps // 2, Schedule([rate], [0, steps // 2], steps), 1)


def test_a_strategy_written_by_hand_conforms() -> None:
    check_strategy(Halving)


class Changed(Halving):
    """Halving with one field of each interval of the second decision changed."""

    changes: ClassVar[dict[str, Any]] = {}
    clone_only = False

    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        if history.round != 1 or not decision.intervals:
            return decision
        *others, clone = decision.intervals
        kept = others if self.clone_only else [replace(interval, **self.changes) for interval in others]
        return replace(decision, intervals=(*kept, replace(clone, **self.changes)))


class WrongRound(Changed):
    changes: ClassVar[dict[str, Any]] = {"round": 5}


class BeyondTheEnd(Changed):
    changes: ClassVar[dict[str, Any]] = {"stop": 600}


class Backwards(Changed):
    changes: ClassVar[dict[str, Any]] = {"stop": 100}


class ScheduleOfAnotherLength(Changed):
    changes: ClassVar[dict[str, Any]] = {"stop": 300}


class RewritesThePast(Changed):
    changes: ClassVar[dict[str, Any]] = {"schedule": Schedule([0.02], [0, 400])}


class RateAboveTheBounds(Changed):
    changes: ClassVar[dict[str, Any]] = {"schedule": Schedule([0.01, 0.5], [0, 200, 400])}


class CloneOfNobody(Changed):
    clone_only = True
    changes: ClassVar[dict[str, Any]] = {"parent": None}


class CloneFromTheMiddle(Changed):
    clone_only = True
    changes: ClassVar[dict[str, Any]] = {"start": 100}


class NumberInUse(Changed):
    clone_only = True
    changes: ClassVar[dict[str, Any]] = {"fork": 3}

    def propose(self, history: History) -> Decision:
        return replace(super().propose(history), drops=())


class SameForkTwice(Changed):
    changes: ClassVar[dict[str, Any]] = {"fork": 2}


class BeginsAgain(Changed):
    clone_only = True
    changes: ClassVar[dict[str, Any]] = {"parent": None, "start": 0}


class BeginsAgainAndSaysSo(BeginsAgain):
    restarts: ClassVar[bool] = True


class DropsTheLiving(Halving):
    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        drops = tuple((interval.fork, "for no reason") for interval in decision.intervals[:1])
        return replace(decision, drops=drops if history.round else ())


class DropsTwice(Halving):
    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        return replace(decision, drops=((3, "again"),)) if history.round == 2 else decision


class KeepsState(Halving):
    def __init__(self) -> None:
        self.calls = 0

    def propose(self, history: History) -> Decision:
        self.calls += 1
        return super().propose(history)

    def first(self, fork: int, rate: float, steps: int) -> Interval:
        return super().first(fork, rate * self.calls, steps)


class RemembersItsLeader(Halving):
    """The second decision stands by what was seen at the first."""

    leader: int | None = None

    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        if history.round == 1 and history.alive:
            self.leader = history.ranked()[1].id
        if decision.winner is not None:
            return replace(decision, winner=self.leader if self.leader is not None else decision.winner)
        return decision


class DrawsFreely(Halving):
    def first(self, fork: int, rate: float, steps: int) -> Interval:
        return super().first(fork, rate * np.random.default_rng().uniform(0.5, 1.0), steps)


class Overspends(Halving):
    def total_steps(self, goal: Goal) -> int:
        return 3 * goal.steps


class PromisesNothing(Halving):
    def total_steps(self, goal: Goal) -> Any:
        return 2.5 * goal.steps


class PromisesDifferently(Halving):
    more = 4

    def total_steps(self, goal: Goal) -> int:
        self.more += 1
        return self.more * goal.steps


class NeverEnds(Halving):
    def total_steps(self, goal: Goal) -> int:
        return 10**9

    def propose(self, history: History) -> Decision:
        intervals = (Interval(history.round, None, 0, 1, Schedule([0.001], [0, 1], 400), history.round + 1),)
        return Decision(intervals)

    restarts: ClassVar[bool] = True


class NoWinner(Halving):
    def propose(self, history: History) -> Decision:
        return replace(super().propose(history), winner=None)


class WinnerThatWasDropped(Halving):
    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        return replace(decision, winner=3) if decision.winner is not None else decision


class WinnerHalfWay(Halving):
    def propose(self, history: History) -> Decision:
        return super().propose(history) if history.round < 1 else Decision(winner=2, reasons=("enough",))


class NoReasons(Halving):
    def propose(self, history: History) -> Decision:
        decision = super().propose(history)
        return decision if decision.intervals else replace(decision, reasons=())


class NoPlanForFailure(Halving):
    def propose(self, history: History) -> Decision:
        if history.forks and not history.alive:
            raise IndexError("list index out of range")
        return super().propose(history)


class ReturnsIntervals(Halving):
    def propose(self, history: History) -> Any:
        return list(super().propose(history).intervals)


class SettingsOfNumpy(Halving):
    def to_json(self) -> dict[str, Any]:
        return {"rates": np.array(self.rates)}


class SettingsThatDiffer(Halving):
    builds = count()

    def __init__(self) -> None:
        self.number = next(self.builds)

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number}


class SettingsThatChange(Halving):
    decisions = 0

    def propose(self, history: History) -> Decision:
        self.decisions += 1
        return super().propose(history)

    def to_json(self) -> dict[str, Any]:
        return {"decisions": self.decisions}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (WrongRound, "decision 2, fork 1: round is 5, expected history.round . 1 = 2"),
        (BeyondTheEnd, "the interval 200 to 600 is not within a run of 400 steps"),
        (Backwards, "the interval 200 to 100 is not within a run of 400 steps"),
        (ScheduleOfAnotherLength, "last change point is 400, expected the end of the interval, 300"),
        (RewritesThePast, "its schedule differs from that of fork 1 before step 200, which has been trained"),
        (RateAboveTheBounds, "the rate reaches 0.5, above the upper bound 0.1"),
        (CloneOfNobody, "fork 4: a new fork that begins at step 200 needs the parent"),
        (CloneFromTheMiddle, "begins from the state of fork 1 at step 100, which is not kept"),
        (NumberInUse, "fork 3: it exists already"),
        (SameForkTwice, "decision 2 has two intervals of fork 2"),
        (BeginsAgain, "begins at step 0 after the first decision.*set restarts = True"),
        (DropsTheLiving, "decision 2 drops fork 1 and continues it"),
        (DropsTwice, "decision 3 drops fork 3, which is not alive"),
        (KeepsState, r"decision 1 changed when it was made again.*fork 0 at rate 0.001, then fork 0 at 0.003"),
        (RemembersItsLeader, r"decision 3 changed when it was made again from the same history \(fork . won"),
        (DrawsFreely, "decision 1 changed when it was made again.*history.goal.seed"),
        (Overspends, "decision 2 brings the steps of all forks to 1,400, and total_steps.goal. promised at most 1,200"),
        (PromisesNothing, "total_steps returned 1000.0"),
        (PromisesDifferently, "total_steps changed during a study"),
        (NeverEnds, "the study is not over after 50 decisions while nothing fails"),
        (NoWinner, "the study ended without a winner although no fork failed"),
        (WinnerThatWasDropped, "fork 3 won, and it failed or was dropped"),
        (WinnerHalfWay, "fork 2 won at step 200, and its schedule is of 400 steps"),
        (NoReasons, "the last decision has no reasons"),
        (NoPlanForFailure, "propose raised IndexError at decision 2 .*after 4 of 4 forks failed"),
        (ReturnsIntervals, "propose must return a Decision, got"),
        (SettingsOfNumpy, "to_json returned what JSON cannot hold"),
        (SettingsThatDiffer, "to_json differs between two strategies that were built alike"),
        (SettingsThatChange, "to_json changed during a study"),
        (dict, "make_strategy must return a Strategy, got dict"),
    ],
)
def test_each_fault_is_found(broken: Callable[[], Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_checks, "MOST_ROUNDS", 50)
    with pytest.raises(ConformanceError, match=message):
        check_strategy(broken)


def test_a_clone_of_a_fork_that_was_dropped_with_its_state_kept_is_fine() -> None:
    check_strategy(BeginsAgainAndSaysSo)


INSTANCE = """
from paceline.strategy import Dynamic
from paceline.testing import check_strategy
check_strategy(Dynamic.horizon())
"""


def test_a_strategy_in_place_of_a_function_says_what_to_pass() -> None:
    """In a process without the type checker of the tests."""
    done = subprocess.run([sys.executable, "-c", INSTANCE], check=False, capture_output=True, text=True)
    assert "InputError: expected a function that builds a strategy, got a strategy: pass `lambda:" in done.stderr
