from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from paceline import Schedule
from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.replay import COMPARED_STEPS, ReplayRun, compare_runs, replay_schedule
from paceline.study import Study
from paceline.tuner import Tuner
from paceline.views.projection import study_view
from tests.views.studies import KEPT

SCHEDULE = Schedule.constant(0.1, 200)


class Stub(QuadraticTraining):
    """A training that yields what it was given."""

    def __init__(self, observed: list[Any]) -> None:
        super().__init__(Quadratic(dims=2))
        self.observed = observed

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        for one in self.observed:
            if isinstance(one, Exception):
                raise one
            yield one


def quadratic() -> QuadraticTraining:
    return QuadraticTraining(Quadratic(dims=20), seed=3)


def finished_study() -> Study:
    """A study whose only fork runs at one rate."""
    from paceline.shapes import Constant
    from paceline.strategy import FixedSchedules

    tuner = Tuner(lr=(0.05, 0.2), steps=200, strategy=FixedSchedules((Constant(),), runs=1))
    training = quadratic()
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            observed = list(training.advance(interval.schedule, interval.stop))
            columns = {name: [value[name] for _, value in observed] for name in ("raw", "averaged")}
            tuner.tell(interval, [step for step, _ in observed], columns)
    return tuner.study


def text(renderable: Any) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_a_replay_is_the_plain_training() -> None:
    run = replay_schedule(quadratic, SCHEDULE)
    expected = list(quadratic().advance(SCHEDULE, 200))
    assert run.steps == [step for step, _ in expected]
    assert run.values["averaged"] == [value["averaged"] for _, value in expected]


def test_a_number_is_of_the_raw_weights() -> None:
    assert replay_schedule(lambda: Stub([(1, 2.0), (5, 1.0)]), SCHEDULE) == ReplayRun([1, 5], {"raw": [2.0, 1.0]})


def test_errors_of_the_training_say_how_far_it_came() -> None:
    with pytest.raises(TrainingError, match="the training raised ValueError after step 1,000: too bad"):
        replay_schedule(lambda: Stub([(1000, 2.0), ValueError("too bad")]), SCHEDULE)
    with pytest.raises(TrainingError, match="the training yielded nothing up to step 200"):
        replay_schedule(lambda: Stub([]), SCHEDULE)


def test_the_same_run_is_recognised() -> None:
    view = study_view(finished_study().events)
    assert view.best is not None
    run = replay_schedule(quadratic, view.best.schedule)
    compared = text(compare_runs(view, view.best.fork, run))
    assert "values of the averaged weights" in compared or "values of the raw weights" in compared
    assert "the same run, value for value" in compared
    assert len([line for line in compared.splitlines() if line.strip()[:1].isdigit()]) == COMPARED_STEPS
    other = ReplayRun(run.steps, {name: [2 * value for value in column] for name, column in run.values.items()})
    assert "a replay can end a little worse" in text(compare_runs(view, view.best.fork, other))


def test_best_moments_are_compared_if_the_study_kept_its_own() -> None:
    replay = ReplayRun([10, 60, 100], {"averaged": [2.0, 0.7, 1.5]})
    compared = text(compare_runs(study_view(KEPT), 2, replay))
    best = "the replay was best at step 60: 0.7 (averaged weights); fork 2 at step 60: 0.8"
    assert best in compared
    assert "was best" not in text(compare_runs(study_view(KEPT), 2, ReplayRun([100], {"raw": [1.5]})))


def test_other_weights_cannot_be_compared() -> None:
    view = study_view(finished_study().events)
    assert view.best is not None
    compared = text(compare_runs(view, view.best.fork, ReplayRun([10], {"other": [1.0]})))
    assert compared.startswith("nothing to compare: the study has raw, averaged values, the replay other")
