"""The history is the state as a strategy sees it."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from paceline.strategy import Decision, Goal
from paceline.study import (
    Created,
    Decided,
    Dropped,
    Event,
    Failure,
    Finished,
    Interval,
    Report,
    StudyState,
    because,
)
from paceline.traces import LearningRateRange, Objective, Schedule
from paceline.tuner.history import HistoryView, consequences, is_whole, same_decision

SCHEDULE = Schedule.constant(0.1, 40)
GOAL = Goal(LearningRateRange(1e-3, 1.0), 40, Objective(weights="averaged"))
BOTH = {"raw": (3.0, 2.0, 1.0), "averaged": (2.5, 1.5, 0.5)}
EVENTS = [
    Created({"lr": [1e-3, 1.0], "steps": 40}),
    Decided(1, 0),
    Interval(0, None, 0, 20, SCHEDULE, 1),
    Interval(1, None, 0, 20, SCHEDULE, 1),
    Report(0, 0, 20, (5, 10, 20), BOTH),
    Report(1, 0, 10, (5, 10), {"raw": (9.0, float("nan")), "averaged": (9.0, 8.0)}, Failure("not finite", step=10)),
    Decided(2, 20),
    Interval(0, None, 20, 40, SCHEDULE, 2),
    Interval(2, 0, 20, 40, Schedule([0.1, 0.05], [0, 20, 40]), 2),
]


def test_forks_have_the_traces_of_both_weights() -> None:
    history = HistoryView(GOAL).of(StudyState.of(EVENTS))
    first, failed, clone = history.forks
    assert history.round == 2
    assert first.trace is not None
    assert first.raw is not None
    assert first.trace.values.tolist() == [2.5, 1.5, 0.5]
    assert first.raw.values.tolist() == [3.0, 2.0, 1.0]
    assert first.last_values == {"raw": 1.0, "averaged": 0.5}
    assert first.final_means == {"raw": 1.0, "averaged": 0.5}
    assert (first.interval_start, first.origin, clone.origin) == (20, (0, 20), (0, 20))
    assert (failed.alive, failed.failure) == (False, Failure("not finite", step=10))
    assert failed.raw is not None
    assert np.isnan(failed.raw.values[-1])
    assert clone.trace is None


@pytest.mark.parametrize(("spacing", "tasks", "mean"), [(1, (), 3.0), (2, (), 2.0), (5, (), 1.0), (5, ("a",), 3.0)])
def test_a_fork_is_judged_at_the_end_by_five_values_if_they_are_close_together(
    spacing: int, tasks: tuple[str, ...], mean: float
) -> None:
    steps = tuple(range(70 - 5 * spacing, 71, spacing))
    report = Report(0, 0, 70, steps, {"raw": (9.0, 5.0, 4.0, 3.0, 2.0, 1.0)})
    schedule = Schedule.constant(0.1, 70)
    settings = {"lr": [1e-3, 1.0], "steps": 70, **({"tasks": list(tasks)} if tasks else {})}
    events = [Created(settings), Decided(1, 0), Interval(0, None, 0, 70, schedule, 1), report]
    goal = Goal(GOAL.lr_range, 70, GOAL.objective, tasks=tasks)
    (fork,) = HistoryView(goal).of(StudyState.of(events)).forks
    assert fork.final_means == {"raw": mean}


def test_raw_values_stand_in_if_the_others_were_not_observed() -> None:
    events = [*EVENTS[:4], Report(0, 0, 20, (20,), {"raw": (3.0,)})]
    (fork, _) = HistoryView(GOAL).of(StudyState.of(events)).forks
    assert fork.trace is not None
    assert fork.raw is not None
    assert fork.trace.values.tolist() == fork.raw.values.tolist() == [3.0]


def test_forks_that_did_not_change_are_not_built_anew() -> None:
    view, state = HistoryView(GOAL), StudyState.of(EVENTS)
    before = view.of(state)
    state.append(Report(2, 20, 40, (40,), {"raw": (0.5,), "averaged": (0.4,)}))
    after = view.of(state)
    assert [new is old for new, old in zip(after.forks, before.forks, strict=True)] == [True, True, False]
    assert after.forks[2].trace is not None
    assert after.forks[2].trace.parent is after.forks[0].trace


def test_a_decision_becomes_events_and_its_end_the_better_weights() -> None:
    history = HistoryView(GOAL).of(StudyState.of(EVENTS))
    drop = (1, because("behind", value=8.0))
    interval = Interval(0, None, 20, 40, SCHEDULE, 3)
    assert consequences(history, Decision((interval,), (drop,)), 20) == [Dropped(1, 20, drop[1]), interval]
    assert consequences(history, Decision(winner=0), 40) == [Finished(0, 40, 0.5, "averaged")]
    assert consequences(history, Decision(), 40) == [Finished(None, 40, None, "averaged")]


@pytest.mark.parametrize(
    ("count", "later", "whole"),
    [(2, EVENTS[2:4], True), (2, EVENTS[2:3], False), (0, [], False), (0, [Finished(0, 40, 1.0, "raw")], True)],
)
def test_a_decision_is_whole_with_all_its_intervals_or_an_end(count: int, later, whole: bool) -> None:
    assert is_whole(Decided(1, 0, (), {"proposals": count}), list(later)) == whole


def test_decisions_are_compared_without_their_reasons() -> None:
    assert same_decision(Dropped(1, 20, because("behind", value=1.0)), Dropped(1, 20, because("text", text="behind")))
    assert not same_decision(Dropped(1, 20, because("no steps left")), Dropped(2, 20, because("no steps left")))
    assert not same_decision(EVENTS[2], EVENTS[3])


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_long_lineage_has_a_history(keep: Literal["best", "last"]) -> None:
    length = 1_100  # deeper than Python may recurse
    events: list[Event] = [EVENTS[0]]
    for n in range(length):
        schedule = Schedule([0.1], [0, 10 * n + 10], 10 * length)
        report = Report(n, 10 * n, 10 * n + 10, (10 * n + 10,), {"raw": (1.0,)}, kept=None if n else 10)
        events += [Interval(n, n - 1 if n else None, 10 * n, 10 * n + 10, schedule, n + 1), report]
    goal = replace(GOAL, steps=10 * length, keep=keep)
    last = HistoryView(goal).of(StudyState.of(events)).forks[-1]
    assert last.trace is not None
    assert len(last.trace.path()[0]) == length
    assert len(last.trace.fork_steps()) == length - 1
    assert last.trace.first_step == 10
    assert (None if last.best is None else last.best.step) == (10 if keep == "best" else None)
