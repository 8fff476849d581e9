"""Forks and histories made by hand, and studies whose values are a function of the interval."""

from collections.abc import Callable, Sequence

import numpy as np

from paceline import Tuner
from paceline.strategy import Dynamic, Fork, Goal, History
from paceline.study import Interval
from paceline.traces import LearningRateRange, Objective, Schedule, Trace, Transform

STEPS = 1000
GOAL = Goal(LearningRateRange(1e-4, 1.0), STEPS, Objective())


def make_fork(
    number: int,
    rate: float,
    *,
    parent: int | None = None,
    start: int = 0,
    stop: int = 500,
    value: float | None = None,
    alive: bool = True,
) -> Fork:
    """A fork at a constant rate, with one observation at its end if a value is given."""
    schedule = Schedule([rate], [0, stop], STEPS, "constant")
    trace = None if value is None else Trace(np.array([stop]), np.array([value]), schedule, name=str(number))
    return Fork(number, parent, start, schedule, trace, trace, alive=alive)


def make_history(*forks: Fork, goal: Goal = GOAL) -> History:
    return History(goal, forks, 1)


def tune_by_hand(
    value_of: Callable[[Interval], float], cost: float = 2.3, strategy: Dynamic | None = None
) -> tuple[Tuner, list[list[Interval]]]:
    """A study whose value is constant over an interval, and the intervals of each of its rounds."""
    tuner, rounds = Tuner(lr=(1e-4, 1.0), steps=STEPS, strategy=strategy or Dynamic.horizon(cost=cost)), []
    while (intervals := tuner.ask()) is not None:
        rounds.append(intervals)
        for interval in intervals:
            value = value_of(interval)
            tuner.tell(interval, [interval.stop], {"raw": [value], "averaged": [value]})
    return tuner, rounds


def distance(interval: Interval, best: float) -> float:
    """A value that is lowest at the best rate."""
    return 1.0 + abs(np.log10(interval.multiplier / best))


BEST_RATE = 0.03


def observed_fork(number: int, rate: float, goal: Goal, *, fails: bool = False) -> Fork:
    """A fork whose loss falls the faster, the nearer its rate is to the best; it may fail half-way."""
    schedule = Schedule([rate], [0, 200], STEPS, "constant")
    steps = np.arange(10, 201, 10)
    speed = 1.0 / (1.0 + np.log10(rate / BEST_RATE) ** 2)
    values = np.exp(-speed * steps / 200)
    if fails:
        steps, values = steps[:10], np.append(values[:9], np.nan)
    trace = Trace(steps, values, schedule, name=str(number), objective=goal.objective, failed=fails)
    return Fork(number, None, 0, schedule, trace, trace, alive=not fails)


def observed_history(
    rates: Sequence[float], *, transform: Transform = "identity", failing: Sequence[float] = ()
) -> History:
    """Forks at these rates after 200 of 1,000 steps."""
    goal = Goal(LearningRateRange(1e-3, 1.0), STEPS, Objective("min", transform, "raw"))
    forks = tuple(observed_fork(i, rate, goal, fails=rate in failing) for i, rate in enumerate(rates))
    return History(goal, forks, 1)
