"""A family of tasks from the first run to the answers, through `tune_tasks`."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline import Study, tune_tasks
from paceline.errors import InputError, TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Streams
from paceline.settings import FamilySettings
from paceline.study import Finished, because
from paceline.traces import Schedule
from tests.quick_families import BOUNDS, NOISES, QUICK, STEPS, TASKS, Diverging, tune_quickly
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream


def test_a_family_ends_with_an_answer_for_each_task(family: Study) -> None:
    assert family.tasks == tuple(NOISES)
    assert list(family.answers) == list(NOISES)
    for answer in family.answers.values():
        assert answer.low <= answer.median <= answer.high
        assert answer.schedule.change_points.tolist() == [0, 20, 40, 60]
    assert set(family.embedding) == set(NOISES)
    assert sum(answer.runs for answer in family.answers.values()) == len(family.intervals) == 5
    assert family.finished == Finished(None, STEPS, None, "raw")
    runs = {trace.name: trace for trace in family.traces()}
    for task, best in family.best.items():
        assert runs[str(best.fork)].task == task
        own = [float(np.mean(trace.values[-5:])) for trace in runs.values() if trace.task == task]
        assert best.value == pytest.approx(min(own), rel=1e-4)
        assert best.schedule == runs[str(best.fork)].schedule
    kept = {path.name for path in (family.path / "checkpoints").iterdir()}
    assert kept == {f"{best.fork}-{STEPS}.pt" for best in family.best.values()}


def test_decisions_say_why_and_what_is_expected(family: Study) -> None:
    first, infill, last = family.decisions[0], family.decisions[-2], family.decisions[-1]
    (design,) = first.reasons
    assert (design.kind, design["first"], design["total"]) == ("initial design", 1, 3)
    assert [run["fork"] for run in design["runs"]] == [0, 1]
    (one, two), intervals = infill.reasons, {each.fork: each for each in family.intervals}
    for reason in (one, two):
        interval = intervals[reason["fork"]]
        assert (reason.kind, reason["task"]) == ("informative run", family.tasks[interval.task])
        assert reason["rates"] == interval.schedule.multipliers.tolist()
        assert reason["after"] < reason["before"]
        assert {row["task"] for row in reason["rivals"]} == set(NOISES) - {reason["task"]}
    assert [(band["fork"], band["weights"]) for band in infill.details["forecast"]] == [(3, "raw"), (4, "raw")]
    assert set(infill.details["infill"][0]["rivals"]) == set(NOISES)
    assert last.reasons == (because("answers", runs=5, failed=0),)
    again = tune_tasks(TASKS, steps=STEPS, lr=BOUNDS, **QUICK, budget=5, batch=2, study=family.path)
    assert again.answers == family.answers
    assert len(again.events) == len(family.events)


def test_a_task_that_always_fails_costs_three_runs_and_the_others_are_answered(tmp_path: Path) -> None:
    tasks = {"fine": TASKS["calm"], "silent": partial(Diverging, 0), "falling": partial(Diverging, 20)}
    with pytest.warns(UserWarning, match="every run of task '.*' failed") as told:
        study = tune_quickly(tasks=tasks, budget=8, batch=3, study=tmp_path)
    assert [str(warning.message).partition(" (")[0] for warning in told] == [
        "every run of task 'silent' failed",
        "every run of task 'falling' failed",
    ]
    failed = [report for report in study.reports if report.failure is not None]
    assert set(study.best) == {"fine"}
    assert sum(study.answers[task].failed for task in ("silent", "falling")) == len(failed)
    assert all(study.answers[task].failed <= 5 for task in ("silent", "falling"))  # three, and what is left of a batch
    assert study.answers["fine"].failed == 0
    assert len(study.intervals) == 8
    reasons = [reason for decision in study.decisions for reason in decision.reasons]
    given_up = {reason["task"] for reason in reasons if reason.kind == "task given up"}
    assert given_up <= {"silent", "falling"}


def test_where_every_run_fails_it_says_so_and_ends(tmp_path: Path) -> None:
    tasks = {"a": partial(Diverging, 0), "b": partial(Diverging, 20)}
    with pytest.raises(TrainingError, match=r"every run failed: lower the upper bound.* is not finite.* kept in"):
        tune_quickly(tasks=tasks, budget=7, study=tmp_path)
    study = Study.open(tmp_path)
    assert study.finished is not None
    assert not study.answers
    assert len(study.intervals) <= 6
    assert study.decisions[-1].reasons == (because("all runs failed", runs=len(study.intervals)),)
    assert study.decisions[1].reasons[0].kind in ("initial design", "no value yet")


def test_a_factory_that_raises_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        tune_quickly(tasks={"a": TASKS["calm"], "x": lambda: 1 / 0, "y": lambda: 1 / 0})
    first, second = raised.value.__notes__
    assert first == "paceline: the training factory raised this"
    assert second in ("paceline: this is task 'x'", "paceline: this is task 'y'")


class Mistaken(QuadraticTraining):
    tried = 0

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        Mistaken.tried += 1
        yield 0, {"image": 1.0}["label"]


def test_a_mistake_in_one_task_comes_back_from_its_first_run(tmp_path: Path) -> None:
    tasks = {"calm": TASKS["calm"], "wrong": lambda: Mistaken(Quadratic())}
    with pytest.raises(KeyError, match="label") as raised:
        tune_quickly(tasks=tasks, budget=8, batch=3, study=tmp_path)
    assert Mistaken.tried == 1
    assert "the training of task 'wrong' raised this" in raised.value.__notes__[0]
    assert not any(report.failure for report in Study.open(tmp_path).reports)


def test_a_family_runs_side_by_side(tmp_path: Path) -> None:
    tasks = {
        "a": partial(device_digits, evaluate="none", every=3),
        "b": partial(device_digits, evaluate="none", every=3),
    }
    study = tune_tasks(
        tasks,
        steps=30,
        lr=(1e-4, 1e-1),
        budget=2,
        batch=2,
        study=tmp_path,
        runner=partial(Streams, make_stream=HostWorkStream),
        **QUICK,
    )
    assert set(study.answers) == {"a", "b"}
    assert not [report for report in study.reports if report.failure is not None]
    assert json.loads((tmp_path / "study.json").read_text())["settings"]["tasks"] == ["a", "b"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 2}, "budget counts all runs, the 3 first ones included, got 2: raise it"),
        ({"initial": 0}, "a model needs runs to begin with, or known ones"),
        ({"tasks": {}}, "tasks must be a dict of name and factory"),
        ({"intervals": 61}, "intervals must lie between 1 and the 60 steps"),
        ({"intrevals": 3}, "tune_tasks has no setting 'intrevals', did you mean 'intervals'"),
        ({"sede": 3}, "tune_tasks has no setting 'sede', did you mean 'seed'"),
    ],
)
def test_what_is_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune_quickly(**settings)


def test_settings_come_as_one_object_or_by_name(family: Study) -> None:
    settings = FamilySettings(**QUICK, budget=7, batch=2)
    again = tune_tasks(TASKS, steps=STEPS, lr=BOUNDS, settings=settings, budget=5, study=family.path)
    assert again.answers == family.answers


def test_the_signature_shows_every_setting() -> None:
    shown = inspect.signature(tune_tasks).parameters
    assert {name: shown[name].default for name in shown if name in {f.name for f in fields(FamilySettings)}} == {
        f.name: f.default for f in fields(FamilySettings)
    }
