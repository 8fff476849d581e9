"""`paceline tune`: what it prints, what it refuses, and continuing after Ctrl-C."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Dynamic
from paceline.study import Finished, Interval, Report, read_journal
from paceline.tuner import tune
from tests.cli.command_line import BOUNDS, INTERRUPTED, SMALL, call, quadratic, refused, shell, tuned

NOT_CALLABLE = 3


def seven() -> int:
    return 7


def zero() -> float:
    return 1 / 0


class Diverging(QuadraticTraining):
    def advance(self, schedule, stop) -> Iterator:
        for step, _ in super().advance(schedule, stop):
            yield step, {"raw": float("nan"), "averaged": float("nan")}


class Unlucky(QuadraticTraining):
    left = 0  # intervals that fail from now on

    def __init__(self) -> None:
        super().__init__(Quadratic(dims=20), seed=3)

    def advance(self, schedule, stop) -> Iterator:
        for step, value in super().advance(schedule, stop):
            if step > 2 and Unlucky.left:
                Unlucky.left -= 1
                raise OSError("read timed out")
            yield step, value


def diverging() -> Diverging:
    return Diverging(Quadratic(dims=20))


def facts(path: Path) -> list[str]:
    """What a study decided and saw, without how long it took."""
    kinds = Interval | Report | Finished
    return sorted(repr(e) for e in read_journal(path / "journal.jsonl") if isinstance(e, kinds))


def test_the_command_line_finds_what_the_library_finds(folder: Path) -> None:
    assert tuned("--quiet").exit_code == 0
    tune(quadratic, steps=200, lr=(0.01, 1.5), cost=1.5, study=folder / "library")
    assert facts(folder / "study") == facts(folder / "library")


def test_tune_says_the_cost_first_then_lines_then_the_result(folder: Path) -> None:
    done = tuned()
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "study: 300 steps in all, as many as 1.5 runs of 200"
    assert lines[1].startswith("decision 1: 8 forks start at")
    assert any(re.match(r"fork 0 reached step 5: .* at rate .*; 5 of 300 steps \(2 %\) done", line) for line in lines)
    assert any(re.match(r"fork \d dropped: its value", line) for line in lines)
    assert any(re.match(r"fork \d+ ended best: .* \(raw weights\), .* \(averaged weights\)", line) for line in lines)
    assert "\x1b" not in done.stdout
    again = tuned()
    assert "300 of 300 steps (100 %) were done before" in again.stdout
    assert again.stdout.splitlines()[1:] == lines[-4:]


def test_quiet_prints_the_result_and_json_one_object(folder: Path) -> None:
    quiet = tuned("--quiet")
    assert quiet.stdout.startswith("fork ")
    assert "decision" not in quiet.stdout
    (folder / "study").rename(folder / "other")
    data = json.loads(tuned("--json").stdout)
    assert data["finished"]
    assert data["done_steps"] == data["total_steps"] == 300
    assert set(data["best"]["values"]) == {"raw", "averaged"}
    assert f"fork {data['best']['fork']} ended best" in quiet.stdout
    assert {"training", "decide", "journal", "checkpoint"} <= set(data["seconds"])
    assert all(fork["schedule"]["steps"] == 200 for fork in data["forks"])


def test_greedy_costs_its_forks(folder: Path) -> None:
    command = ["tune", "tests.cli.test_tune_command:zero", "--steps", "60", *BOUNDS, "--preset", "greedy"]
    assert call(*command).stdout == "runs/tests.cli.test_tune_command-zero: 300 steps in all, as many as 5 runs of 60\n"
    assert "120 steps in all, as many as 2 runs of 60" in call(*command, "--cost", "2.3").stdout


def test_paper_is_the_printed_algorithm(folder: Path) -> None:
    command = ["tune", "tests.cli.command_line:quadratic", "--steps", "60", *BOUNDS, "--preset", "paper"]
    assert call(*command, "--cost", "2", "--study", "study").exit_code == 0
    settings = json.loads((folder / "study" / "study.json").read_text())["settings"]
    assert settings["strategy"] == json.loads(json.dumps(Dynamic.paper(forks=2).to_json()))
    assert "one per unit of cost, got 0.5" in call(*command, "--cost", "0.5").stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("options", "code"), [((), 0), (("--retries", "0"), 2), (("--retries", "-1"), 2)])
def test_an_interval_is_tried_again_as_often_as_asked(options: tuple[str, ...], code: int) -> None:
    Unlucky.left = 1
    done = call("tune", "tests.cli.test_tune_command:Unlucky", *SMALL, *options)
    assert done.exit_code == code, done.output
    assert ("fork 0 is tried again" in done.stderr) == (code == 0)


def test_cost_1_is_a_single_run_whose_checkpoint_is_where_it_says(folder: Path) -> None:
    done = call(
        "tune", "tests.cli.command_line:quadratic", "--steps", "400", *BOUNDS, "--cost", "1", "--study", "study"
    )
    assert "400 steps in all, as many as 1 runs of 400" in done.stdout
    where = re.search(r"its checkpoint: (\S+)", done.stdout)
    assert where is not None
    assert (folder / where[1]).exists()
    assert "judged by averaged weights" in call("show", "study").stdout
    assert call("replay", "study", "tests.cli.command_line:quadratic").exit_code == 0


def test_ctrl_c_says_how_to_continue_and_continuing_ends_the_same(folder: Path) -> None:
    (folder / "train.py").write_text(INTERRUPTED)
    command = ["tune", "train:make", "--steps", "200", *BOUNDS, "--cost", "1.5"]
    cut = shell(folder, *command, "--study", "my study", AT="30")
    assert cut.returncode == 130 == 128 + signal.SIGINT
    assert "Traceback" not in cut.stderr
    assert re.search(r"stopped after \d+ of 300 steps \(\d+ %\); all of them are kept in my study", cut.stderr)
    assert cut.stderr.endswith(f"continue with: python -m paceline {' '.join(command)} --study 'my study'\n")
    rest, whole = shell(folder, *command, "--study", "my study"), tuned("--quiet")
    assert rest.returncode == 0, rest.stderr
    assert "were done before" in rest.stdout
    assert "\x1b" not in rest.stdout
    assert rest.stdout.splitlines()[-4:-2] == whole.stdout.splitlines()[-4:-2]
    assert facts(folder / "my study") == facts(folder / "study")


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("train", "expected module:factory, got 'train': write train:make"),
        (":make", "expected module:factory, got ':make'"),
        ("nowhere:make", r"no module 'nowhere', neither in this folder \(.*\) nor installed: check the name"),
        ("nowhere.train:make", "no module 'nowhere.train', neither in this folder"),
        (
            "tests.cli.command_line:quadratik",
            "module 'tests.cli.command_line' has no 'quadratik': it defines .*quadratic",
        ),
        (
            "tests.cli.test_tune_command:NOT_CALLABLE",
            ":NOT_CALLABLE is a int, not a function",
        ),
        ("tests.cli.test_tune_command:seven", "factory must return a Training .* got int"),
        ("tests.cli.test_tune_command:diverging", "every fork failed: lower the upper bound"),
        ("broken:make", r"importing 'broken' failed at .*broken.py, line 2: NameError: name 'nothing'"),
        ("needs:make", r"importing 'needs' failed at .*needs.py, line 1: No module named 'missing_package'"),
    ],
)
def test_a_factory_that_cannot_be_used(factory: str, message: str, folder: Path) -> None:
    (folder / "broken.py").write_text("import os\nnothing\n")
    (folder / "needs.py").write_text("import missing_package\n")
    refused(call("tune", factory, *SMALL), message)


def test_a_factory_that_raises_shows_its_own_lines() -> None:
    done = call("tune", "tests.cli.test_tune_command:zero", *SMALL)
    assert done.exit_code == 2
    first, place, *_, error, note = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert re.search(r"test_tune_command.py., line \d+, in zero", place)
    assert (error, note) == ("ZeroDivisionError: division by zero", "paceline: the training factory raised this")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--steps", "200", "--lr", "1.5", "0.01"],
            r"bounds must satisfy 0 < low < high, got \(1.5, 0.01\): swap them",
        ),
        (["--steps", "0", *BOUNDS], "steps must be at least 1, got 0"),
        (["--steps", "10", *BOUNDS], "10 steps are too few"),
        (["--steps", "200", *BOUNDS, "--cost", "0.5"], "cost must be at least 1, one run of all steps, got 0.5"),
        (["--steps", "200", *BOUNDS, "--preset", "greedy", "--cost", "0.5"], "one per unit of cost, got 0.5: pass 1"),
        (["--steps", "200", *BOUNDS, "--gpus", "1"], "gpus is a setting of the runner ray, got it with local"),
        (["--steps", "200", *BOUNDS, "--runner", "ray", "--forks", "4"], "forks is a setting of the runner streams"),
        (["--steps", "200", *BOUNDS, "--runner", "ray", "--cpus", "1.5"], "cpus must be a fraction up to 1 or a whole"),
    ],
)
def test_settings_that_cannot_be_used(options: list[str], message: str, folder: Path) -> None:
    refused(call("tune", "tests.cli.command_line:quadratic", *options), message)
    assert not (folder / "runs").exists()


def test_a_file_is_no_folder_for_a_study(folder: Path) -> None:
    (folder / "study").touch()
    refused(tuned(), f"expected a folder to keep the study in, got {folder / 'study'}, which is a file")
