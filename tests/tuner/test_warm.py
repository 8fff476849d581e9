"""A run of a new task with what a family has shown: from a small family to the result, interrupted and continued."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from paceline import Study, tune_tasks, warm_start
from paceline.errors import InputError
from paceline.runner import Streams
from paceline.settings import NewTaskSettings
from paceline.study import Created, Decided, Interval, Report, load_known_runs, read_journal
from paceline.training import load_checkpoint
from paceline.tuner import Result, plan_task
from tests.quick_families import BOUNDS, QUICK, QUICK_NEW_TASK, STEPS, quadratic
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream


def start_new(family: Path, study: Path | None, **settings) -> Result:
    return warm_start(family, partial(quadratic, 1.0), study=study, **{**QUICK_NEW_TASK, "probe": 5, **settings})


def facts(path: Path) -> list[str]:
    """What a study decided and observed, without how long it took."""
    events = [e for e in read_journal(path / "journal.jsonl") if not isinstance(e, Created)]
    return [repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in events]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "family"
    tasks = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
    tune_tasks(tasks, steps=STEPS, lr=BOUNDS, budget=2, batch=2, study=path, **QUICK)
    return path


@pytest.fixture(scope="module")
def whole(family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "whole"
    result = start_new(family, path)
    assert result.schedule is not None
    return path


def test_a_new_task_is_one_run_to_the_end(whole: Path, family: Path) -> None:
    study = Study.open(whole)
    assert study.finished is not None
    assert study.finished.step == STEPS
    assert [(p.start, p.stop) for p in study.intervals] == [(0, 20), (20, 40), (40, 60)]
    assert len({p.fork for p in study.intervals}) == 1
    last = next(e for e in reversed(study.events) if isinstance(e, Report))
    assert study.finished.value == pytest.approx(last.values[study.finished.weights][-1])
    state = load_checkpoint(study.checkpoint(study.finished.fork, STEPS))  # type: ignore[arg-type]
    assert state["done"] == STEPS
    settings = study.settings["strategy"]
    assert settings["strategy"] == "new task"
    assert settings["family"]["tasks"] == ["calm", "wild"]
    assert settings["probe"] == 1  # five steps, rounded up to an interval
    assert len(load_known_runs(whole)) == study.settings["known"]["runs"] == len(Study.open(family).intervals) == 2


def test_every_decision_says_where_the_task_lies(whole: Path) -> None:
    decisions = Study.open(whole).decisions
    assert [[reason.kind for reason in decision.reasons] for decision in decisions] == [
        ["probe"],
        *([["location", "plan"]] * 2),
        ["ended best", "location"],
    ]
    for decision in decisions:
        assert [row["task"] for row in decision.details["embedding"]] == ["calm", "wild"]
        location = decision.details["location"]
        assert location["spread"] > 0
        assert len(location["mean"]) == 1
        assert len(location["samples"]) == len(location["weights"]) == 6


def test_without_a_probe_it_begins_as_a_cold_start_does(family: Path) -> None:
    result = start_new(family, None, probe=0)
    test, run = result.history.forks
    assert (test.schedule.steps, run.schedule.steps) == (12, STEPS)
    assert result.study.decisions[0].reasons[0].kind == "range test"
    assert result.fork == run.id


class Interrupt(BaseException):
    """Stands for Ctrl-C."""


def test_cut_off_at_any_event_it_goes_on_alike_without_the_family(family: Path, whole: Path, tmp_path: Path) -> None:
    count = len(read_journal(whole / "journal.jsonl"))
    for cut in range(3, count, 6):
        events, copied, folder = [], tmp_path / f"family{cut}", tmp_path / f"cut{cut}"
        shutil.copytree(family, copied)

        def stop(event, cut=cut, events=events) -> None:
            events.append(event)
            if len(events) == cut:
                raise Interrupt

        with pytest.raises(Interrupt):
            start_new(copied, folder, on_event=stop)
        assert len(read_journal(folder / "journal.jsonl")) == cut < count
        shutil.rmtree(copied)  # a study holds what it was begun with
        result = start_new(copied, folder)
        assert facts(folder) == facts(whole), cut
    assert start_new(copied, whole).value == result.value  # one that is finished is read back


def test_what_is_refused(family: Path, whole: Path) -> None:
    with pytest.raises(InputError, match="the family's runs take 60 steps, got steps=80: leave steps= out"):
        start_new(family, None, steps=80)
    with pytest.raises(InputError, match="a probe takes 0 to 2 of the 3 intervals, got 41 steps: leave some"):
        start_new(family, None, probe=41)
    with pytest.raises(InputError, match="'calm' is a task of the family, expected a new name"):
        start_new(family, None, name="calm")
    with pytest.raises(
        InputError, match="is another kind of study: choose another folder for the study of the new task"
    ):
        start_new(family, family)
    with pytest.raises(InputError, match="warm_start has no setting 'pobe', did you mean 'probe'"):
        start_new(family, None, pobe=3)
    with pytest.raises(InputError, match="other settings"):
        start_new(family, whole, method="universal")


def test_a_new_task_with_forks_runs_side_by_side(tmp_path: Path) -> None:
    make = partial(device_digits, evaluate="none", every=2)
    quick = {**QUICK, "intervals": 2}
    family = tune_tasks(
        {"a": make, "b": make}, steps=16, lr=(1e-4, 1e-1), budget=2, batch=2, **quick, study=tmp_path / "f"
    )
    result = warm_start(
        family,
        make,
        forks=2,
        **QUICK_NEW_TASK,
        study=tmp_path / "new",
        runner=partial(Streams, make_stream=HostWorkStream),
    )
    assert result.schedule is not None
    events = Study.open(tmp_path / "new").events
    assert not [e for e in events if isinstance(e, Report) and e.failure is not None]
    assert sum(isinstance(event, Interval) for event in events) == 4


ROWS = {"calm": {"rows": 1000}, "wild": {"rows": 100}}


@pytest.fixture(scope="module")
def rows_family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "rows"
    tasks = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
    tune_tasks(tasks, steps=STEPS, lr=BOUNDS, budget=4, batch=4, initial=4, at=ROWS, study=path, **QUICK)
    return path


def test_a_new_task_begins_at_its_coordinates(rows_family: Path, tmp_path: Path) -> None:
    start_new(rows_family, tmp_path / "new", at={"rows": 300})
    settings = Study.open(tmp_path / "new").settings["strategy"]["family"]
    assert settings["at"] == {**ROWS, "new": {"rows": 300}}
    count = len(read_journal(tmp_path / "new" / "journal.jsonl"))
    start_new(tmp_path / "deleted", tmp_path / "new", at={"rows": 300})
    assert len(read_journal(tmp_path / "new" / "journal.jsonl")) == count
    with pytest.raises(InputError, match="other settings"):
        start_new(rows_family, tmp_path / "new", at={"rows": 301})


def test_coordinates_of_a_new_task_are_those_of_its_family(rows_family: Path, family: Path) -> None:
    with pytest.raises(InputError, match="tasks of its family, rows, got at=None: pass"):
        start_new(rows_family, None)
    with pytest.raises(InputError, match=r"tasks of its family, none, got at=.*: leave at= out"):
        start_new(family, None, at={"rows": 5})
    with pytest.raises(InputError, match="the same coordinates, rows, got columns for 'new'"):
        start_new(rows_family, None, at={"columns": 5})


def test_a_task_is_planned_from_its_coordinates_alone(rows_family: Path) -> None:
    settings = NewTaskSettings(**QUICK_NEW_TASK)
    like_calm, like_wild = (plan_task(rows_family, at={"rows": rows}, settings=settings) for rows in (1000, 100))
    assert like_calm.schedule.steps == STEPS
    careful, median, optimistic = like_calm.quantiles
    assert optimistic < median < careful
    assert median < like_wild.quantiles[1]  # wild is noisier, and ends higher
