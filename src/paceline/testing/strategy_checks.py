"""Checks of a strategy: it is a function of the history, its intervals can be trained, and it keeps its budget."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paceline.errors import ConformanceError, InputError
from paceline.strategy import Decision, Fork, Goal, History, Strategy, steps_taken
from paceline.study import Interval
from paceline.testing.simulation import Failing, run_simulation
from paceline.traces import Objective

MOST_ROUNDS = 1_000


def check_strategy(
    make_strategy: Callable[[], Strategy],
    *,
    steps: int = 400,
    lr: "tuple[float, float]" = (1e-4, 1e-1),
    tasks: Sequence[str] = (),
    seed: int = 0,
) -> None:
    """Check that a strategy can tune: three studies of a made-up loss, in which nothing, high rates or all forks fail.

    Args:
        make_strategy: builds the strategy, as in `check_strategy(Dynamic.horizon)`. Several are built.
        steps: length of one run.
        lr: bounds of the rate.
        tasks: names of the tasks, for a strategy that tunes a family.
        seed: of the study.
    """
    if isinstance(make_strategy, Strategy):
        raise InputError(
            "expected a function that builds a strategy, got a strategy: pass `lambda: MyStrategy(...)`, since the "
            "decisions of several are compared"
        )
    study = _StudySettings(lr, steps, tuple(tasks), seed)
    _check_settings(make_strategy)
    for failing in ("nothing", "high rates", "everything"):
        _check_study(make_strategy, study, failing)


@dataclass(frozen=True)
class _StudySettings:
    lr: tuple[float, float]
    steps: int
    tasks: tuple[str, ...]
    seed: int


@dataclass
class _CheckedStrategy(Strategy):
    """A strategy whose decisions are checked and kept as it makes them."""

    inner: Strategy
    decisions: list[tuple[History, Decision]] = field(default_factory=list[tuple[History, Decision]])
    total: int = 0

    def __post_init__(self) -> None:
        self.restarts = self.inner.restarts  # pyright: ignore[reportAttributeAccessIssue]
        self.families = self.inner.families  # pyright: ignore[reportAttributeAccessIssue]

    def propose(self, history: History) -> Decision:
        decision = _propose(self.inner, history, len(self.decisions) + 1)
        _check_decision(history, decision, self._kept_states(history))
        spent = steps_taken(history) + sum(interval.stop - interval.start for interval in decision.intervals)
        if spent > self.total:
            raise ConformanceError(
                f"decision {len(self.decisions) + 1} brings the steps of all forks to {spent:,}, and "
                f"total_steps(goal) promised at most {self.total:,}: propose less, or promise more"
            )
        self.decisions.append((history, decision))
        return decision

    def _kept_states(self, history: History) -> set[tuple[int, int]]:
        """Fork and step of each state that is kept when this decision is made."""
        living = {(fork.id, int(fork.schedule.change_points[-1])) for fork in history.alive}
        states = living or {fork.origin for fork in history.forks if fork.failure is not None}
        latest = self.decisions[-1][1].intervals if self.decisions else ()
        if len(latest) == 1:
            states.add(latest[0].origin)
        if self.inner.restarts or not self.decisions:
            states |= {(task, 0) for task in range(max(1, len(history.goal.tasks)))}
        return states

    def total_steps(self, goal: Goal) -> int:
        self.total = self.inner.total_steps(goal)
        if not isinstance(self.total, int) or self.total < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConformanceError(
                f"total_steps returned {self.total!r}: return the most steps that all forks together take, an int"
            )
        return self.total

    def to_json(self) -> dict[str, Any]:
        return self.inner.to_json()

    def objective(self, objective: Objective) -> Objective:
        return self.inner.objective(objective)


def _propose(strategy: Strategy, history: History, number: int) -> Decision:
    try:
        decision: Any = strategy.propose(history)
    except Exception as error:
        failed = sum(fork.failure is not None for fork in history.forks)
        raise ConformanceError(
            f"propose raised {type(error).__name__} at decision {number} ({error}), after {failed} of "
            f"{len(history.forks)} forks failed: return a Decision for every history"
        ) from error
    if not isinstance(decision, Decision):
        raise ConformanceError(f"propose must return a Decision, got {decision!r} at decision {number}")
    return decision


def _check_settings(make_strategy: Callable[[], Strategy]) -> None:
    first, second = make_strategy(), make_strategy()
    if not isinstance(first, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConformanceError(f"make_strategy must return a Strategy, got {type(first).__name__}: subclass Strategy")
    try:
        settings = json.dumps(first.to_json(), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConformanceError(
            f"to_json returned what JSON cannot hold ({error}): return dicts, lists, strings and finite numbers"
        ) from error
    if json.dumps(second.to_json(), allow_nan=False, sort_keys=True) != settings:
        raise ConformanceError(
            "to_json differs between two strategies that were built alike: return settings only, a study that is "
            "continued compares them"
        )


def _check_study(make_strategy: Callable[[], Strategy], study: _StudySettings, failing: Failing) -> None:
    inner = make_strategy()
    settings = json.dumps(inner.to_json(), sort_keys=True)
    checked = _CheckedStrategy(inner)
    tuner = run_simulation(
        checked,
        lr=study.lr,
        steps=study.steps,
        seed=study.seed,
        tasks=study.tasks,
        failing=failing,
        most_rounds=MOST_ROUNDS,
    )
    history, end = checked.decisions[-1]
    if end.intervals:
        raise ConformanceError(
            f"the study is not over after {MOST_ROUNDS:,} decisions while {failing} fails: end it with a Decision "
            "without intervals"
        )
    _check_end(history, end, study, failing, families=inner.families)
    if json.dumps(inner.to_json(), sort_keys=True) != settings:
        raise ConformanceError("to_json changed during a study: return the settings that the strategy was built with")
    if inner.total_steps(tuner.goal) != checked.total:
        raise ConformanceError("total_steps changed during a study: it must depend on the goal and the settings alone")
    _check_repeats(make_strategy(), checked.decisions)


def _check_end(history: History, end: Decision, study: _StudySettings, failing: Failing, *, families: bool) -> None:
    if not end.reasons:
        raise ConformanceError("the last decision has no reasons: say who won and why, or why nobody did")
    if families:
        return
    if end.winner is None:
        if failing == "nothing":
            raise ConformanceError(
                "the study ended without a winner although no fork failed: name the best in Decision(winner=)"
            )
        return
    winner = _fork(history, end.winner)
    if winner is None or not winner.alive:
        state = "failed or was dropped" if winner is not None else "does not exist"
        raise ConformanceError(f"fork {end.winner} won, and it {state}: name a fork of history.alive")
    reached = int(winner.schedule.change_points[-1])
    if reached != winner.schedule.steps:
        raise ConformanceError(
            f"fork {winner.id} won at step {reached:,}, and its schedule is of {winner.schedule.steps:,} steps: train "
            "the winner to the end of its run"
        )


def _check_decision(history: History, decision: Decision, kept: set[tuple[int, int]]) -> None:
    number = history.round + 1
    forks = [interval.fork for interval in decision.intervals]
    if twice := [fork for fork in forks if forks.count(fork) > 1]:
        raise ConformanceError(f"decision {number} has two intervals of fork {twice[0]}: propose one for each fork")
    for dropped, _ in decision.drops:
        fork = _fork(history, dropped)
        if fork is None or not fork.alive:
            raise ConformanceError(
                f"decision {number} drops fork {dropped}, which is not alive: drop living forks only"
            )
        if dropped in forks:
            raise ConformanceError(f"decision {number} drops fork {dropped} and continues it: do one of them")
    for interval in decision.intervals:
        name = f"decision {number}, fork {interval.fork}"
        _check_interval(history, interval, name)
        _check_origin(history, interval, kept, name)


def _check_interval(history: History, interval: Interval, name: str) -> None:
    goal, number = history.goal, history.round + 1
    if interval.round != number:
        raise ConformanceError(f"{name}: round is {interval.round}, expected history.round + 1 = {number}")
    if not 0 <= interval.start < interval.stop <= goal.steps:
        raise ConformanceError(
            f"{name}: the interval {interval.start:,} to {interval.stop:,} is not within a run of {goal.steps:,} steps"
        )
    if goal.tasks and not 0 <= interval.task < len(goal.tasks):
        raise ConformanceError(f"{name}: task {interval.task} is none of the {len(goal.tasks)} tasks: count from 0")
    if int(interval.schedule.change_points[-1]) != interval.stop:
        raise ConformanceError(
            f"{name}: the schedule's last change point is {int(interval.schedule.change_points[-1]):,}, expected the "
            f"end of the interval, {interval.stop:,}: extend the fork's schedule with `schedule.extend(rate, stop)`"
        )
    rates = interval.schedule(np.arange(interval.start, interval.stop))
    if rates.max() > goal.lr_range.high * (1 + 1e-9):
        raise ConformanceError(
            f"{name}: the rate reaches {rates.max():.6g}, above the upper bound {goal.lr_range.high:.6g}: keep rates "
            "within history.goal.lr_range"
        )


def _check_origin(history: History, interval: Interval, kept: set[tuple[int, int]], name: str) -> None:
    """The state that it begins from exists, and its schedule agrees with what was trained until there."""
    fork = _fork(history, interval.fork)
    if fork is not None and (interval.parent is not None or interval.start == 0):
        raise ConformanceError(f"{name}: it exists already: give a new fork a number that no other has")
    if fork is None and interval.parent is None and interval.start > 0:
        raise ConformanceError(
            f"{name}: a new fork that begins at step {interval.start:,} needs the parent whose state it begins from"
        )
    if interval.start == 0:
        if interval.origin not in kept:
            raise ConformanceError(
                f"{name}: it begins at step 0 after the first decision, when that state is no longer kept: set "
                "restarts = True in the class, and it is"
            )
        return
    number, step = interval.origin
    origin = _fork(history, number)
    if origin is None or (number, step) not in kept:
        raise ConformanceError(
            f"{name}: it begins from the state of fork {number} at step {step:,}, which is not kept: only the latest "
            "states of living forks are, or, if every fork failed, those that they began from"
        )
    at = np.arange(step)
    if not np.allclose(interval.schedule(at), origin.schedule(at), rtol=1e-9, atol=0):
        raise ConformanceError(
            f"{name}: its schedule differs from that of fork {number} before step {step:,}, which has been trained: "
            "extend or join schedules, and leave the past as it is"
        )


def _check_repeats(strategy: Strategy, decisions: list[tuple[History, Decision]]) -> None:
    """A new strategy decides the same, from the last decision to the first: nothing is remembered or drawn freely."""
    for number, (history, decision) in reversed(list(enumerate(decisions, start=1))):
        with_other_random_numbers = _propose(strategy, history, number)
        difference = _difference(decision, with_other_random_numbers)
        if difference:
            raise ConformanceError(
                f"decision {number} changed when it was made again from the same history ({difference}): keep no state "
                "and draw from a generator seeded with (history.goal.seed, history.round); a study that is continued "
                "asks again"
            )


def _difference(first: Decision, second: Decision) -> str:
    if first.winner != second.winner:
        return f"fork {first.winner} won, then fork {second.winner}"
    dropped = [[fork for fork, _ in decision.drops] for decision in (first, second)]
    if dropped[0] != dropped[1]:
        return f"forks {dropped[0]} were dropped, then {dropped[1]}"
    if len(first.intervals) != len(second.intervals):
        return f"{len(first.intervals)} intervals, then {len(second.intervals)}"
    for a, b in zip(first.intervals, second.intervals, strict=True):
        if a != b:
            return f"fork {a.fork} at rate {a.multiplier:.9g}, then fork {b.fork} at {b.multiplier:.9g}"
    return ""


def _fork(history: History, number: int) -> Fork | None:
    return next((fork for fork in history.forks if fork.id == number), None)
