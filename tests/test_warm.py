"""A new task begun with what a family has shown: from a small study of one to the result, cut off and gone on with."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from paceline import Study, tune_tasks, warm_start
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner.streams import Streams
from paceline.strategy.multitask import Effort
from paceline.strategy.newtask import Thought
from paceline.study import Decided, Finished, Interval, read_journal
from paceline.study.known import read_known
from paceline.training import load_checkpoint
from paceline.tuner.result import Result
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

BOUNDS, STEPS, EVERY = (0.01, 1.5), 60, 4
EFFORT = Effort(outer=4, inner=4, rough=4, screened=8, starts=1, moves=1, draws=8, grid=3, sweeps=1)
QUICK = {"intervals": 3, "dims": 1, "link": "linear", "effort": EFFORT}
THOUGHT = Thought(places=6, models=2, draws=4, grid=3, sweeps=1, climbs=1)


def quadratic(noise: float) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), 3, every=EVERY)


def begun(family: Path, study: Path | None, **settings) -> Result:
    return warm_start(family, partial(quadratic, 1.0), study=study, **{"thought": THOUGHT, "probe": 5, **settings})


def facts(path: Path) -> list[str]:
    """What a study decided and saw, without how long it took."""
    kept = [e for e in read_journal(path / "journal.jsonl") if isinstance(e, Interval | Observed | Finished | Decided)]
    return [repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in kept]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "family"
    tasks = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
    tune_tasks(tasks, steps=STEPS, lr=BOUNDS, budget=2, batch=2, study=path, **QUICK)
    return path


@pytest.fixture(scope="module")
def whole(family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "whole"
    result = begun(family, path)
    assert result.schedule is not None
    return path


def test_a_new_task_is_one_run_to_the_end(whole: Path, family: Path) -> None:
    study = Study.open(whole)
    assert study.finished is not None
    assert study.finished.step == STEPS
    assert [(p.start, p.stop) for p in study.intervals] == [(0, 20), (20, 40), (40, 60)]
    assert len({p.fork for p in study.intervals}) == 1
    last = next(e for e in reversed(study.events) if isinstance(e, Observed))
    assert study.finished.value == pytest.approx(last.values[study.finished.weights][-1])
    state = load_checkpoint(study.checkpoint(study.finished.fork, STEPS))  # type: ignore[arg-type]
    assert state["done"] == STEPS
    settings = study.settings["strategy"]
    assert settings["strategy"] == "new task"
    assert settings["family"]["tasks"] == ["calm", "wild"]
    assert settings["probe"] == 1  # five steps, rounded up to an interval
    assert len(read_known(whole)) == study.settings["known"]["runs"] == len(Study.open(family).intervals) == 2


def test_every_decision_says_where_the_task_lies(whole: Path) -> None:
    decisions = Study.open(whole).decisions
    assert decisions[0].reasons[0].startswith("a probe at ")
    assert all("new lies " in decision.reasons[0] for decision in decisions[1:-1])
    assert "ended best" in decisions[-1].reasons[0]
    for decision in decisions:
        assert [row["task"] for row in decision.details["embedding"]] == ["calm", "wild"]
        place = decision.details["place"]
        assert place["spread"] > 0
        assert len(place["mean"]) == 1
        assert len(place["points"]) == len(place["weights"]) == 6


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
            begun(copied, folder, on_event=stop)
        assert len(read_journal(folder / "journal.jsonl")) == cut < count
        shutil.rmtree(copied)  # a study holds what it was begun with
        result = begun(copied, folder)
        assert facts(folder) == facts(whole), cut
    assert begun(copied, whole).value == result.value  # one that is finished is read back


def test_what_is_refused(family: Path, whole: Path) -> None:
    with pytest.raises(InputError, match="the family's runs take 60 steps, got steps=80: leave steps= out"):
        begun(family, None, steps=80)
    with pytest.raises(InputError, match="a probe takes 0 to 2 of the 3 intervals, got 3: leave some"):
        begun(family, None, probe=41)
    with pytest.raises(InputError, match="'calm' is a task of the family, expected a new name"):
        begun(family, None, name="calm")
    with pytest.raises(InputError, match="is another kind of study: choose another folder for that of the new task"):
        begun(family, family)
    with pytest.raises(InputError, match="other settings"):
        begun(family, whole, how="universal")


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
        thought=THOUGHT,
        study=tmp_path / "new",
        runner=partial(Streams, make_stream=HostWorkStream),
    )
    assert result.schedule is not None
    events = Study.open(tmp_path / "new").events
    assert not [event for event in events if isinstance(event, Failed)]
    assert sum(isinstance(event, Interval) for event in events) == 4
