"""`paceline tasks` and families in `show`, `export` and `replay`, as people meet them."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline.factory import load_tasks
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Study
from tests.cli.command_line import INTERRUPTED, call, refused, shell, tuned
from tests.quick_families import Diverging

COMMON = ["--steps", "60", "--lr", "0.01", "1.5", "--intervals", "2"]
TASKS = {
    "calm": partial(QuadraticTraining, Quadratic(0.3, dims=20), 3, every=4),
    "two words": partial(QuadraticTraining, Quadratic(1.0, dims=20), 3, every=4),
}
NUMBERED = {1: TASKS["calm"]}
HOPELESS = {"a": partial(Diverging, 0), "b": partial(Diverging, 20)}


def made() -> dict:
    return TASKS


def broken() -> dict:
    raise KeyError("no data")


def family(*more: str, name: str = "TASKS", budget: int = 2):
    return call("tasks", f"tests.cli.test_tasks_command:{name}", *COMMON, "--budget", str(budget), *more)


def test_tasks_says_what_it_does_and_ends_with_the_answers(folder: Path) -> None:
    done = family("--study", "study", budget=3)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "study: 2 tasks, 3 runs of 60 steps in all"
    assert lines[1].startswith("decision 1: first runs by Latin hypercube, 1 of 2: task '")
    assert any(re.match(r"run 0 of task '.*' ended at .*; 60 of 180 steps \(33 %\) done", line) for line in lines)
    assert any(re.search(r"run 2 is expected to end at .* \(.* to .*\)", line) for line in lines)
    assert any(re.match(r"two words +\S+, \S+ +\S+ \(\S+ to \S+\)", line) for line in lines)
    assert "every fork failed" not in done.output
    assert lines[-1] == "to use a schedule elsewhere: paceline export study --task calm --format python"
    again = family("--study", "study", budget=3)
    assert "180 of 180 steps (100 %) were done before" in again.stdout
    assert again.stdout.splitlines()[1:] == lines[-5:]
    other = family("--study", "study", budget=4)
    refused_family(other, r"other settings \(strategy, total_steps\).* It was made with --steps 60 .*--budget 3")
    refused_family(tuned("--study", "study"), "other settings")


def refused_family(done, message: str) -> None:
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr.splitlines()[-1]), done.stderr
    assert "Traceback" not in done.output


def test_a_family_is_shown_exported_and_replayed(folder: Path) -> None:
    quiet = family("--study", "study", "--quiet")
    assert quiet.stdout.startswith("task ")
    study = Study.open("study")
    shown = call("show", "study").stdout
    for part in ("2 tasks; schedules of 2 rates from 0.01 to 1.5; 2 runs of 60 steps", "run", "won", "forecast of its"):
        assert part in shown, shown
    assert "no run reached" not in shown
    data = json.loads(call("show", "study", "--json").stdout)
    assert data["tasks"] == ["calm", "two words"]
    assert data["answers"]["calm"]["schedule"] == study.answers["calm"].schedule.to_json()
    assert set(data["best_runs"]) == set(data["embedding"]) == set(data["tasks"])
    assert data["best"] is None
    assert [fork["task"] for fork in data["forks"]] == [study.tasks[p.task] for p in study.intervals]
    again = json.loads(family("--study", "study", "--json").stdout)
    assert again["answers"] == data["answers"]
    answer = study.answers["two words"].schedule
    assert json.loads(call("export", "study", "--task", "two words").stdout) == answer.to_json()
    best = call("export", "study", "--task", "two words", "--best")
    assert json.loads(best.stdout) == study.best["two words"].schedule.to_json()
    written = call("export", "study", "--task", "calm", "--format", "python", "-o", "rate.py")
    assert written.stderr == "wrote rate.py: the answer for task calm of the study study\n"
    names: dict = {}
    exec((folder / "rate.py").read_text(), names)
    rates = study.answers["calm"].schedule(np.arange(60))
    assert [names["learning_rate"](step) for step in range(60)] == pytest.approx(rates, rel=1e-12)
    refused(call("export", "study"), "study is a family, expected --task with one of calm, two words, got none")
    refused(call("export", "study", "--task", "x"), "expected --task with one of calm, two words, got 'x'")
    replay = call("replay", "study", "tests.cli.test_tasks_command:TASKS.get", "--task", "x")
    refused(replay, "expected --task with one of calm")
    data = json.loads(call("replay", "study", "tests.cli.command_line:quadratic", "--task", "calm", "--json").stdout)
    assert data["study"]["fork"] == study.best["calm"].fork
    assert data["replay"]["steps"][-1] == 60


def test_a_family_that_is_not_over_offers_its_best_runs(folder: Path) -> None:
    family("--study", "study", "--quiet")
    journal = folder / "study" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]))
    task = Study.open("study").tasks[Study.open("study").intervals[0].task]
    assert "not over: 1 of 2 runs are done; best so far: '" in call("show", "study").stdout
    done = call("export", "study", "--task", task)
    assert done.stderr.startswith(f"note: study is not over: this is the schedule of the best run of task '{task}'")
    other = next(name for name in TASKS if name != task)
    refused(call("export", "study", "--task", other), "none of its runs is done yet")


def test_where_every_run_fails_nothing_is_claimed(folder: Path) -> None:
    refused_family(family("--study", "study", name="HOPELESS"), "every run failed: lower the upper bound")
    shown = call("show", "study").stdout
    assert "no run reached the end: every run failed" in shown
    assert re.search(r"failed: the value at step \d+ is not finite", shown)
    refused(call("export", "study", "--task", "a"), "no schedule to offer for task 'a': none of its runs reached")


def test_old_studies_are_joined(folder: Path) -> None:
    tuned("--quiet")
    done = family("--study", "family", "--known", "old=study", name="made")
    assert done.exit_code == 0, done.output
    shown = call("show", "family").stdout
    assert re.search(r"seed 0; \d+ runs known beforehand: 'old' \(study\)", shown)
    refused(family("--known", "study"), "expected --known NAME=STUDY, got 'study': write --known old=runs/old")
    refused(family("--known", "a=x", "--known", "a=y"), "expected each name of --known once, got 'a' twice")
    refused(family("--known", "a=nowhere"), "nowhere is not a study: expected a folder with study.json")


def test_costs_coordinates_and_wanted_tasks(folder: Path) -> None:
    known = ["--at", "calm:rows=1600", "--at", "two words:rows=400", "--wanted", "calm"]
    costs = ["--cost", "calm=1", "--cost", "two words=0.25"]
    done = call("tasks", "tests.cli.test_tasks_command:TASKS", *COMMON, *known, *costs, "--budget", "1.5")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].endswith(": 2 tasks, runs of 60 steps at a cost of 1.5 in all")
    assert any(line.endswith("; runs at a cost of 0.5 of 1.5 (33 %) done") for line in lines)
    assert any(re.match(r"task +rows +answer", line) for line in lines)
    settings = Study.open("runs/tests.cli.test_tasks_command-TASKS").settings["strategy"]
    assert settings["at"] == {"calm": {"rows": 1600}, "two words": {"rows": 400}}
    assert (settings["costs"], settings["wanted"]) == ({"calm": 1, "two words": 0.25}, ["calm"])
    refused_family(family("--study", "runs/tests.cli.test_tasks_command-TASKS"), r"--at calm:rows=1600 .*--wanted calm")
    refused(family("--at", "calm=5"), "expected --at NAME:KEY=NUMBER, got 'calm=5': write --at half:rows=30000")
    refused(family("--cost", "calm=x"), "expected --cost NAME=NUMBER, got 'calm=x': write a number")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "tests.cli.test_tasks_command:NUMBERED",
            r"expected a dict of names and functions .* got 1: functools.partial",
        ),
        (
            "tests.cli.test_tasks_command:broken",
            r":broken raised KeyError: 'no data' at .*, line",
        ),
        ("tests.cli.test_tasks_command:COMMON", r"expected a dict of names and functions .* got \['--steps'"),
        ("tests.cli.test_tasks_command:nothing", "module 'tests.cli.test_tasks_command' has no 'nothing'"),
        ("train", "expected module:tasks, got 'train': write train:tasks for `tasks` in train.py"),
    ],
)
def test_tasks_that_cannot_be_used(name: str, message: str, folder: Path) -> None:
    refused(call("tasks", name, *COMMON), message)
    assert load_tasks("tests.cli.test_tasks_command:made") == TASKS


def test_ctrl_c_says_how_to_continue_a_family(folder: Path) -> None:
    (folder / "train.py").write_text(INTERRUPTED + "\n\ntasks = {'a': make}\n")
    command = ["tasks", "train:tasks", *COMMON, "--budget", "1"]
    cut = shell(folder, *command, AT="30")
    assert cut.returncode == 130
    assert cut.stderr.endswith(f"continue with: python -m paceline {' '.join(command)}\n")
    rest = call(*command)
    assert "0 of 60 steps (0 %) were done before" in rest.stdout  # a run that is cut off begins again
    assert Study.open("runs/train-tasks").finished is not None
