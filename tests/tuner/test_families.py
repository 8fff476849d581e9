"""Runs made before, joined into a family; and a family study read back."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline import Schedule, Study, Trace, tune, tune_tasks
from paceline.errors import InputError, JournalError
from paceline.shapes import Linear
from paceline.strategy.multitask import Space
from paceline.strategy.multitask.preprocess_runs import preprocess_runs
from paceline.study import digest_of_runs, load_known_runs, save_known_runs
from paceline.traces import LearningRateRange
from paceline.tuner import load_family, read_known_runs
from tests.quick_families import BOUNDS, NOISES, QUICK, STEPS, TASKS, facts, quadratic, tune_quickly


def test_a_study_is_read_back_as_the_family_that_made_it(family: Study) -> None:
    plan, traces = load_family(family.path)
    assert plan.tasks == tuple(NOISES)
    answers = plan.answers(plan.fit(traces), traces)
    assert {t: a.schedule for t, a in answers.items()} == {t: a.schedule for t, a in family.answers.items()}


def test_old_studies_join_a_family_and_are_not_run(single: Path, family: Study, tmp_path: Path) -> None:
    old, copied = tmp_path / "old", tmp_path / "family"
    shutil.copytree(single, old)
    shutil.copytree(family.path, copied)
    known = {"single": old, "before": copied}
    settings = {"known": known, "budget": 3, "tasks": {"calm": TASKS["calm"], "new": partial(quadratic, 1.5)}}
    study = tune_quickly(study=tmp_path / "joined", **settings)
    plan, traces = load_family(study)
    assert plan.tasks == study.tasks == ("calm", "new")
    assert plan.known_tasks == ("rough", "single", "wild")
    assert set(study.answers) == {"calm", "new"}
    assert set(study.embedding) == {"calm", "new", "single", "rough", "wild"}
    assert study.answers["calm"].runs > sum(p.task == 0 for p in study.intervals)
    (design,) = study.decisions[0].reasons
    assert [run["task"] for run in design["runs"]] == ["new"]  # calm is known
    assert design["total"] == 2
    assert any(trace.parent is not None for trace in traces)
    assert len({trace.name for trace in traces}) == len(traces)
    # the study needs nothing but itself
    shutil.rmtree(old)
    shutil.rmtree(copied)
    journal = study.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    before = facts(study.path)
    journal.write_bytes(b"".join(lines[:-4]))
    assert tune_quickly(study=study.path, **settings).answers == study.answers
    assert facts(study.path) == before
    with pytest.raises(InputError, match="other settings"):
        tune_quickly(study=study.path, **{**settings, "known": {"single": old}})
    (study.path / "known.jsonl").write_text("")
    with pytest.raises(JournalError, match="has changed since the study started"):
        tune_quickly(study=study.path, **settings)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one run, with clones on a decaying base."""
    path = tmp_path_factory.mktemp("studies") / "single"
    tune(partial(quadratic, 0.5), steps=STEPS * 2, lr=BOUNDS, cost=3.2, study=path)
    return path


def test_known_runs_come_on_the_same_base_or_as_rates(single: Path) -> None:
    runs = read_known_runs({"old": single}, weights="averaged")
    base = runs[0].schedule.base
    settings = {"known": {"old": single}, "tasks": {"new": TASKS["rough"]}, "budget": 1}
    space = Space(LearningRateRange(*BOUNDS), STEPS * 2, 3)
    rates, multipliers = preprocess_runs(runs, space), preprocess_runs(runs, replace(space, base=base))
    named = {run.name: run for run in runs}  # those that were observed only once say nothing
    for run, rate, multiplier in zip((named[rate.name] for rate in rates), rates, multipliers, strict=True):
        at = np.arange(run.last_step)
        np.testing.assert_allclose(rate.schedule(at), run.schedule(at), rtol=1e-6)
        assert rate.schedule.tuned_base is None
        assert multiplier.schedule == run.schedule
    assert any(run.parent is not None for run in rates)
    with pytest.raises(
        InputError, match=r"of 60 steps on the base .* multipliers of different bases cannot be compared"
    ):
        tune_quickly(base=base, **settings)
    with pytest.raises(InputError, match="expected runs of 120 steps on the base Linear"):
        tune_tasks(settings["tasks"], steps=STEPS * 2, lr=BOUNDS, known=settings["known"], base=Linear(), **QUICK)
    study = tune_tasks(
        {"new": TASKS["rough"]}, steps=STEPS * 2, lr=BOUNDS, known=settings["known"], base=base, budget=1, **QUICK
    )
    assert study.answers["new"].schedule.base == base
    assert study.settings["strategy"]["weights"] == "averaged"


def test_traces_of_any_origin_can_be_known(tmp_path: Path) -> None:
    steps = np.arange(4, 61, 4)
    traces = [Trace.from_table(steps, np.full(15, r), 1 / (1 + r * steps)) for r in (0.1, 0.5)]
    child = traces[0].fork([64], [0.1], Schedule.constant(0.1, 80))
    runs = read_known_runs({"log": [child, traces[1]]})
    assert [run.task for run in runs] == ["log"] * 3
    assert runs[1].parent is runs[0]
    save_known_runs(tmp_path, runs)
    assert digest_of_runs(load_known_runs(tmp_path)) == digest_of_runs(runs)
    assert load_known_runs(tmp_path / "elsewhere") == []
    study = tune_quickly(known={"log": traces}, initial=0, budget=1)
    assert study.answers
    with pytest.raises(InputError, match=r"known\['log'\]: expected runs with mode 'max', got 'min'"):
        read_known_runs({"log": traces}, mode="max")
    with pytest.raises(InputError, match="expected runs with observations, got none"):
        read_known_runs({"log": []})
    with pytest.raises(InputError, match="is a study of one run: expected one of a family"):
        load_family(Study(tmp_path, {}, ()))
