"""What workers are given: an interval, or the initial state of a task."""

from pathlib import Path

from paceline.runner.ray.assignments import Assignment
from paceline.study import Interval
from paceline.traces import Schedule

SCHEDULE = Schedule.constant(0.1, 100)


def test_an_interval_has_steps_and_may_be_a_clones() -> None:
    continued = Assignment(Interval(2, None, 20, 50, SCHEDULE, 2), Path("2-20.pt"), Path("2-50.pt"))
    clone = Assignment(Interval(9, 2, 20, 50, SCHEDULE, 2), Path("2-20.pt"), Path("9-50.pt"))
    assert (continued.steps, continued.is_clone) == (30, False)
    assert (clone.steps, clone.is_clone) == (30, True)
    assert continued != Assignment(continued.interval, continued.origin, continued.target)  # each is tried on its own


def test_an_initial_state_needs_no_steps() -> None:
    initial = Assignment(None, None, Path("3-0.pt"), task=3)
    assert (initial.steps, initial.is_clone) == (0, False)
