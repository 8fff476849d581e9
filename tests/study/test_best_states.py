"""The best moment of each fork: what beats it, whose it is after a clone, and which states stay on the disk."""

import pytest

from paceline.study import Interval, KeepRule, Report, StudyState
from paceline.study.best_states import BestState, BestStates, kept_state
from paceline.traces import Schedule


def interval(fork: int, start: int, stop: int, parent: int | None = None, number: int = 1) -> Interval:
    return Interval(fork, parent, start, stop, Schedule([0.1], [0, stop], 100), number)


# Fork 0 is best at step 10, and its clone 1 gets better than that at step 30; fork 2 is never as good.
EVENTS = [
    interval(0, 0, 20),
    interval(2, 0, 20),
    Report(0, 0, 20, (0, 10, 20), {"raw": (2.0, 1.0, 1.5), "averaged": (2.0, 1.2, 1.4)}, kept=10),
    Report(2, 0, 20, (0, 10, 20), {"raw": (2.0, 1.9, 1.8)}, kept=20),
    interval(1, 20, 40, parent=0, number=2),
    Report(1, 20, 40, (30, 40), {"raw": (0.8, 0.9)}, kept=30),
]


def states_after(count: int) -> tuple[StudyState, BestStates]:
    return StudyState.of(EVENTS[:count]), BestStates(sign=-1.0)


def test_a_clone_has_the_best_moment_of_its_parent_until_it_beats_it() -> None:
    state, bests = states_after(5)
    assert bests.of(state, state.forks[1]) == BestState(1.0, "raw", 0, 10)
    assert bests.rule(state, interval(1, 20, 40, parent=0)) == KeepRule(-1.0, 1.0)
    state, bests = states_after(6)
    assert bests.of(state, state.forks[1]) == BestState(0.8, "raw", 1, 30)
    assert bests.overall(state) == BestState(0.8, "raw", 1, 30)


def test_moments_after_the_clone_began_are_not_on_its_path() -> None:
    state = StudyState.of([*EVENTS[:3], interval(3, 5, 40, parent=0, number=2)])
    assert BestStates(sign=-1.0).of(state, state.forks[3]) is None


def test_as_many_states_are_needed_as_there_are_living_forks() -> None:
    state, bests = states_after(4)
    assert bests.needed(state) == {(0, 10), (2, 20)}
    assert bests.needed(StudyState.of(EVENTS[:2])) == set()


@pytest.mark.parametrize(("sign", "better", "worse"), [(-1.0, 0.9, 1.1), (1.0, 1.1, 0.9)])
def test_an_observation_beats_by_the_better_of_its_weights(sign: float, better: float, worse: float) -> None:
    rule = KeepRule(sign, 1.0)
    assert rule.is_beaten_by({"raw": worse, "averaged": better})
    assert not rule.is_beaten_by({"raw": worse, "averaged": 1.0})
    assert KeepRule(sign).is_beaten_by({"raw": worse})


def test_a_report_tells_the_value_and_the_weights_of_its_best_moment() -> None:
    report = Report(4, 0, 20, (10, 20), {"raw": (1.0, 3.0), "averaged": (2.0, 0.5)}, kept=20)
    assert kept_state(report, -1.0) == BestState(0.5, "averaged", 4, 20)
    assert kept_state(report, 1.0) == BestState(3.0, "raw", 4, 20)


def test_the_untrained_state_is_that_of_the_task() -> None:
    assert BestState(2.0, "raw", 5, 0, task=1).origin == (1, 0)
    assert BestState(2.0, "raw", 5, 10, task=1).origin == (5, 10)
