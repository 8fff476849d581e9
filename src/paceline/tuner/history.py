"""The study state as a strategy sees it, and a decision as the events that follow from it."""

from collections.abc import Sequence

import numpy as np

from paceline.strategy import Decision, Fork, Goal, History
from paceline.study import (
    BestStates,
    Decided,
    Dropped,
    Event,
    Failure,
    Finished,
    ForkState,
    ForkTraces,
    Interval,
    Report,
    StudyState,
    TurnRule,
    Values,
    as_reason,
    column,
)
from paceline.traces import has_diverged

FINAL_VALUES = 5  # values at the end of a report whose mean judges a fork at the end of a run ...
FINAL_SHARE = 0.07  # ... if they are of this last part of it: what was seen before says more about other rates


class HistoryView:
    """The history of one study as it grows. Only forks that have changed since the last call are built anew.

    Args:
        goal: what is tuned.
    """

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self._traces = ForkTraces(goal.objective, goal.objective.weights)
        self._by_weights = {weights: ForkTraces(goal.objective, weights) for weights in ("raw", "averaged")}
        self._forks: dict[int, Fork] = {}  # by number, in order
        self._seen = 0  # events
        self.best_states = BestStates(goal.objective.sign)

    def of(self, state: StudyState) -> History:
        """The history of a study in this state."""
        last = next(reversed(self._forks), -1)
        changed = state.changed_forks(self._seen)
        new = [number for number in changed if number not in self._forks]
        for number in changed:
            self._forks[number] = self._build(state, state.forks[number])
        if new and new[0] < last:
            self._forks = dict(sorted(self._forks.items()))
        self._seen = state.count
        return History(self.goal, tuple(self._forks.values()), state.round)

    def turn_rule(self, state: StudyState, interval: Interval) -> TurnRule:
        """When an interval ends early, given what its path has observed before it."""
        objective, (steps, values) = self.goal.objective, self._path_before(state, interval)
        return TurnRule(objective.sign, objective.weights, steps, values)

    def divergence(self, state: StudyState, interval: Interval, steps: Sequence[int], values: Values) -> Failure | None:
        """The failure of an interval whose values are finite, and have diverged by its end; None if they have not."""
        observed = np.concatenate([self._path_before(state, interval)[1], column(values, self.goal.objective.weights)])
        if not has_diverged(-self.goal.objective.sign * observed):
            return None
        return Failure("diverged", f"{observed[-1]:.4g} after {observed[0]:.4g} at first", step=steps[-1])

    def _path_before(self, state: StudyState, interval: Interval) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values that an open interval follows."""
        fork = state.forks[interval.fork]
        if not fork.reports and fork.parent is not None:
            fork = state.forks[fork.parent]
        trace = self._traces.of(state, fork)
        steps, values = (np.array([], dtype=int), np.array([])) if trace is None else trace.path()
        before = steps <= interval.start
        return steps[before], values[before]

    def _final_count(self, report: Report) -> int:
        """How many values at the end of a report judge its fork at the end of a run. A family's runs have few."""
        if self.goal.tasks:
            return FINAL_VALUES
        late = np.array(report.steps[-FINAL_VALUES:]) >= report.stop - FINAL_SHARE * self.goal.steps
        return max(1, int(late.sum()))

    def _build(self, state: StudyState, fork: ForkState) -> Fork:
        latest, reports = state.latest_interval(fork), state.reports(fork)
        trace = self._traces.of(state, fork)
        observed = {weights for report in reports for weights in report.values}
        by_weights = {
            weights: traces.of(state, fork) if weights in observed - {self.goal.objective.weights} else trace
            for weights, traces in self._by_weights.items()
        }
        values = {weights: column for weights, column in reports[-1].values.items() if column} if reports else {}
        return Fork(
            id=fork.id,
            parent=fork.parent,
            start=fork.start,
            schedule=latest.schedule,
            trace=trace,
            **by_weights,
            last_values={weights: column[-1] for weights, column in values.items()},
            final_means={
                weights: float(np.mean(column[-self._final_count(reports[-1]) :])) for weights, column in values.items()
            },
            alive=fork.alive,
            failure=reports[-1].failure if reports else None,
            task=latest.task,
            interval_start=latest.start,
            best=self.best_states.of(state, fork) if self.goal.keep == "best" else None,
        )


def consequences(history: History, decision: Decision, step: int) -> list[Event]:
    """The events that follow from a decision, in order."""
    events: list[Event] = [Dropped(fork, step, as_reason(reason)) for fork, reason in decision.drops]
    events += decision.intervals
    if not decision.intervals:
        events.append(_finished(history, decision.winner))
    return events


def _finished(history: History, winner: int | None) -> Finished:
    """The end of a study: the winner's value, of raw or averaged weights, whichever is better.

    If the best weights are kept, the fork that observed the best value of all wins, whatever became of it later.
    """
    steps, objective = history.goal.steps, history.goal.objective
    if winner is None:
        return Finished(None, steps, None, objective.weights)
    best = history.best
    last_values = history.fork(winner if best is None else best.fork).last_values
    weights, value = max(last_values.items(), key=lambda item: (objective.sign * item[1], item[0] == "raw"))
    if best is None:
        return Finished(winner, steps, value, weights)
    return Finished(best.fork, best.step, best.value, best.weights, last=value)


def is_whole(decided: Decided, later: list[Event]) -> bool:
    """Whether all the events that follow from a decision are in the journal."""
    expected = int(decided.details.get("proposals", 0))
    proposed = sum(isinstance(event, Interval) for event in later)
    return bool(expected and proposed == expected) or any(isinstance(event, Finished) for event in later)


def same_decision(event: Event, other: Event) -> bool:
    """Whether two events decide the same. Reasons do not count: format 1 of the journal held them as sentences."""
    if isinstance(event, Dropped) and isinstance(other, Dropped):
        return (event.fork, event.step) == (other.fork, other.step)
    return event == other
