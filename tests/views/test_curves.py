"""Lines of forks: the values and rates that were observed, joined at clones and thinned."""

import numpy as np
import pytest

from paceline.study import Created, Decided, Event, Interval, Report
from paceline.traces import Schedule
from paceline.views.curves import (
    best_curve,
    best_values,
    clone_starts,
    curves,
    fork_values,
    forks_by_number,
    last_observation,
    rate_line,
    shown_forks,
    thin,
    whole_curve,
)
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_a_curve_starts_at_the_last_value_of_its_parent_and_omits_what_is_not_finite() -> None:
    view = study_view(STUDY)
    by_fork = {curve.fork: curve for curve in curves(view, "raw")}
    assert by_fork[2].steps == (20, 60, 100)
    assert by_fork[2].values == (1.5, 0.9, 0.5)
    assert by_fork[0].steps == (10, 20)  # the value at step 60 is not finite
    assert {curve.fork: curve.values for curve in curves(view)}[2] == (1.6, 0.8, 0.45)  # averaged weights decide


def test_the_best_curve_is_the_whole_run() -> None:
    view = study_view(STUDY)
    best = best_curve(view)
    assert best is not None
    assert (best.fork, best.steps, best.values) == (2, (10, 20, 60, 100), (2.2, 1.6, 0.8, 0.45))
    assert best == whole_curve(view, view.fork(2))
    assert best_values(view) == [2.2, 1.6, 0.8, 0.45]
    assert best_curve(study_view([])) is None
    assert best_values(study_view([])) == []


def test_the_best_values_of_a_family_are_those_of_the_best_run_of_each_task() -> None:
    view = study_view(golden("journal-1-family"))
    expected = [v for run in view.best_runs.values() for v in view.fork(run.fork).values[view.weights]]
    assert len(view.best_runs) > 1
    assert best_values(view) == expected


def test_clones_start_at_the_value_of_their_parent_and_at_their_own_rate() -> None:
    (start,) = clone_starts(study_view(STUDY))
    assert (start.fork, start.parent, start.step, start.value) == (2, 0, 20, 1.6)
    assert start.rate == pytest.approx(0.05 * 0.8)


def test_the_last_observation_may_be_that_of_an_ancestor() -> None:
    view = study_view(STUDY)
    forks = forks_by_number(view)
    assert last_observation(view, forks, forks[2], 20) == (20, 1.6)
    assert last_observation(view, forks, forks[2], 59) == (20, 1.6)
    assert last_observation(view, forks, forks[2], 60) == (60, 0.8)
    assert last_observation(view, forks, forks[0], 100, "raw") == (20, 1.5)  # at step 60 it is not finite
    assert last_observation(view, forks, forks[0], 9) is None


def test_values_of_weights_that_were_not_observed_are_those_of_the_others() -> None:
    view = study_view(STUDY)
    raw_only = view.fork(2)._replace(values={"raw": (0.9, 0.5)})
    assert fork_values(view, raw_only) == (0.9, 0.5)
    assert fork_values(view, view.fork(2), "raw") == (0.9, 0.5)
    assert fork_values(view, view.fork(2)) == (0.8, 0.45)


def test_rates_jump_where_they_change() -> None:
    assert rate_line(Schedule([0.1, 0.01], [0, 50, 100]), 0, 100) == ((0, 50, 50, 100), (0.1, 0.1, 0.01, 0.01))
    assert rate_line(Schedule([0.1, 0.01], [0, 50, 100]), 50, 100) == ((50, 50, 100), (0.1, 0.01, 0.01))
    assert rate_line(Schedule([0.1], [0, 50]), 50, 50) == ((), ())
    steps, rates = rate_line(Schedule([1.0], [0, 1000], base="linear"), 0, 1000)
    assert np.interp([0, 250, 999], steps, rates) == pytest.approx([1, 0.75, 0.001], abs=1e-3)


def test_thinning_keeps_spikes_and_ends(rng: np.random.Generator) -> None:
    values = rng.normal(size=10_000)
    values[[1234, 8765]] = 50, -50
    steps, thinned = thin(range(10_000), values.tolist(), max_points=200)
    assert len(steps) <= 202
    assert {0, 1234, 8765, 9999} <= set(steps)
    assert all(values[step] == value for step, value in zip(steps, thinned, strict=True))
    assert list(steps) == sorted(set(steps))


def test_a_long_study_is_read_in_linear_time() -> None:
    """Two thousand clones of clones: no recursion, and no search for a fork among all others."""
    view = study_view(chain_of_clones(2_000))
    assert len(view.whole_run(1_999)[0]) == 2_000
    assert [fork.fork for fork in shown_forks(view)] == list(range(999, 2_000))  # the latest thousand and the best
    assert [curve.fork for curve in curves(view)] == list(range(999, 2_000))


def chain_of_clones(count: int) -> list[Event]:
    """A study of one step per fork in which each fork is a clone of the one before it."""
    schedule = Schedule([0.1], [0, 1], 2 * count)
    events: list[Event] = [Created({"lr": [0.01, 1.0], "steps": 2 * count, "mode": "min"}), Decided(1, 0, (), {}, 0.0)]
    for n in range(count):
        events.append(Interval(n, n - 1 if n else None, n, n + 1, schedule, 1))
        events.append(Report(n, n, n + 1, (n + 1,), {"raw": (1.0 / (n + 1),)}))
    return events
