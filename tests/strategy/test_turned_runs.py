"""Studies whose runs turn end early with their best moment. With raw values alone, a clone anneals first."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from paceline import Schedule, tune
from paceline.strategy.turned_runs import may_reach
from paceline.study import BestState, Event, Interval, Report
from paceline.tuner import Result

STEPS = 400


AVERAGED_ABOVE = 1e-9  # the two kinds of weights hardly differ


class Overfitting:
    """A run whose value falls with the summed rate and rises with it beyond a limit; lower rates cost nothing.

    Args:
        weights: which values it yields.
        limit: the summed rate at which it is best.
    """

    evaluates = True

    def __init__(self, *weights: str, limit: float = 1.0) -> None:
        self.weights, self.limit = weights, limit
        self.step, self.summed = 0, 0.0

    def advance(self, schedule: Schedule, stop: int) -> Iterator[tuple[int, dict[str, float]]]:
        while self.step < stop:
            self.summed += float(schedule(self.step))
            self.step += 1
            if self.step % 4 == 0 or self.step == stop:
                yield self.step, {name: self.value + AVERAGED_ABOVE * (name == "averaged") for name in self.weights}

    @property
    def value(self) -> float:
        past = self.summed / self.limit
        return float(0.1 + np.exp(-3 * min(past, 1.0)) + 0.3 * max(past - 1.0, 0.0))

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step, "summed": self.summed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step, self.summed = state["step"], state["summed"]


def run(*weights: str, limit: float = 1.0, **settings: Any) -> tuple[Result, list[Event]]:
    events = list[Event]()
    result = tune(
        lambda: Overfitting(*weights, limit=limit),
        steps=STEPS,
        lr=(1e-3, 1e-1),
        on_event=events.append,
        quiet=True,
        **settings,
    )
    return result, events


def steps_of(events: list[Event]) -> int:
    return sum(event.stop - event.start for event in events if isinstance(event, Report))


@pytest.mark.parametrize("cost", [1, 1.5, 2.3, 5])
def test_a_study_whose_runs_have_turned_ends_early_with_their_best(cost: float) -> None:
    early, events = run("raw", "averaged", cost=cost)
    full, all_events = run("raw", "averaged", cost=cost, early_stop=False)
    assert early.value is not None
    assert early.last is not None
    assert early.value <= (full.value or 0.0) + 0.002
    assert early.value < early.last
    assert steps_of(events) < 0.8 * steps_of(all_events)
    reason = early.study.decisions[-1].reasons[0] if early.study else None
    assert reason is not None
    assert (reason.kind, reason["step"]) == ("turned", early.step)


@pytest.mark.parametrize("cost", [1.5, 2.3])
def test_where_nothing_turns_decisions_are_the_same(cost: float) -> None:
    some, others = (run("raw", "averaged", cost=cost, limit=1e3, **more)[1] for more in ({}, {"early_stop": False}))
    assert [e for e in some if isinstance(e, Interval)] == [e for e in others if isinstance(e, Interval)]


@pytest.mark.filterwarnings("ignore:no averaged values were reported")
def test_with_raw_values_alone_a_clone_anneals_from_before_the_best_moment() -> None:
    result, events = run("raw", cost=2.3, limit=3.0)
    assert result.study is not None
    reasons = [reason for decision in result.study.decisions for reason in decision.reasons]
    annealing = [reason for reason in reasons if reason.kind == "anneal"]
    assert len(annealing) == 1
    clone = next(e for e in events if isinstance(e, Interval) and e.fork == annealing[0]["fork"])
    rates = clone.schedule(np.arange(clone.start, clone.stop))
    assert np.all(np.diff(rates) <= 1e-12)
    assert rates[-1] < 0.2 * rates[0]
    assert steps_of(events) <= 2.3 * STEPS


def test_a_fork_may_reach_what_its_slope_promises() -> None:
    result, _ = run("raw", "averaged", cost=1.5, limit=1e3)
    history = result.history
    fork = history.fork(result.fork or 0)
    now = fork.trace.path()[1][-1] if fork.trace is not None else 0.0
    assert may_reach(fork, BestState(now, "raw", 0, 10), history)
    assert not may_reach(fork, BestState(now - 1.0, "raw", 0, 10), history)
