"""What a strategy gets: goals, forks and histories."""

from dataclasses import replace

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.strategy import Fork, Goal
from paceline.traces import LearningRateRange, Objective, Schedule, Trace
from tests.strategy.example_forks import GOAL, make_fork, make_history

BOUNDS = LearningRateRange(1e-4, 1.0)


@pytest.mark.parametrize(
    ("steps", "seed", "message"),
    [
        (0, 0, "steps must be at least 1, got 0"),
        (10, -1, "seed must not be negative, got -1"),
    ],
)
def test_a_goal_refuses(steps, seed, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Goal(BOUNDS, steps, Objective(), seed)


def values_of(*values: float, points: tuple[int, ...] = (0, 50, 100)) -> Fork:
    schedule = Schedule([0.1] * (len(points) - 1), points, 1000, "constant")
    steps = np.linspace(0, points[-1], len(values) + 1).round().astype(int)[1:]
    return Fork(0, None, 0, schedule, Trace(steps, np.array(values), schedule))


def test_a_value_now_is_the_last_one_or_a_mean_over_the_latest_interval() -> None:
    fork = values_of(8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)  # four of them in the latest interval
    assert fork.recent() == 1.0
    assert fork.recent(0.5) == 1.5
    assert fork.recent(1.0) == 2.5
    assert np.isnan(make_fork(0, 0.1).recent())


def test_a_fork_is_judged_by_its_raw_weights_at_the_end() -> None:
    fork = values_of(2.0, 1.0)
    assert fork.final_value == 1.0
    assert replace(fork, final_means={"averaged": 0.9}).final_value == 1.0
    assert replace(fork, final_means={"averaged": 0.9, "raw": 1.1}).final_value == 1.1


def test_an_interval_begins_from_the_parent_the_first_time_and_from_the_fork_after_that() -> None:
    clone = make_fork(3, 0.1, parent=1, start=200)
    assert make_fork(3, 0.1).origin == (0, 0)
    assert replace(make_fork(3, 0.1), task=2).origin == (2, 0)
    assert replace(clone, interval_start=200).origin == (1, 200)
    assert replace(clone, interval_start=350).origin == (3, 350)


def test_forks_are_ranked_by_value_and_dropped_ones_left_out() -> None:
    forks = [make_fork(0, 0.01, value=3.0), make_fork(1, 0.1, value=1.0), make_fork(2, 1.0, value=0.1, alive=False)]
    assert [fork.id for fork in make_history(*forks).ranked()] == [1, 0]
    largest = replace(GOAL, objective=Objective("max"))
    assert [fork.id for fork in make_history(*forks, goal=largest).ranked()] == [0, 1]
    assert [fork.id for fork in make_history(*forks).alive] == [0, 1]


def test_forks_with_equal_values_are_ranked_from_the_middle_of_the_bounds() -> None:
    rates = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    forks = [make_fork(i, rate, value=0.1) for i, rate in enumerate(rates)]
    assert [fork.id for fork in make_history(*forks).ranked()] == [2, 1, 3, 0, 4]


def test_a_history_has_the_traces_that_were_observed_and_forks_by_number() -> None:
    history = make_history(make_fork(0, 0.01), make_fork(4, 0.1, value=1.0))
    assert [trace.name for trace in history.traces()] == ["4"]
    assert history.fork(4).multiplier == 0.1
    with pytest.raises(InputError, match=r"expected one of the forks \[0, 4\], got 2"):
        history.fork(2)
