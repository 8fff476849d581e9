"""The command line as people meet it: what it prints, what it refuses, and going on after Ctrl-C."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import paceline
from paceline.cli import app
from paceline.cli.options import Where
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import RUNNERS
from paceline.study import Interval, Journal, Study, read_journal
from paceline.study.events import Finished, Observed
from paceline.tuner import tune

BOUNDS = ["--lr", "0.01", "1.5"]
SMALL = ["--steps", "200", *BOUNDS, "--cost", "1.5", "--study", "study"]
NOT_CALLABLE = 3
SOURCE = str(Path(__file__).parents[1] / "src")


def quadratic() -> QuadraticTraining:
    return QuadraticTraining(Quadratic(dims=20), seed=3)


def seven() -> int:
    return 7


def zero() -> float:
    return 1 / 0


class Diverging(QuadraticTraining):
    def advance(self, schedule, stop) -> Iterator:
        for step, _ in super().advance(schedule, stop):
            yield step, {"raw": float("nan"), "averaged": float("nan")}


def diverging() -> Diverging:
    return Diverging(Quadratic(dims=20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture(scope="module")
def tuned_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "study"
    assert call("tune", "tests.test_cli:quadratic", *SMALL[:-1], str(path), "--quiet").exit_code == 0
    return path


@pytest.fixture
def finished(folder: Path, tuned_once: Path) -> Path:
    """A folder with a study that `tuned` has ended, for those who only look at it."""
    shutil.copytree(tuned_once, folder / "study")
    return folder


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def tuned(*more: str) -> Result:
    return call("tune", "tests.test_cli:quadratic", *SMALL, *more)


def shell(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paceline", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )


def facts(path: Path) -> list[str]:
    """What a study decided and saw, without how long it took."""
    kinds = Interval | Observed | Finished
    return sorted(repr(e) for e in read_journal(path / "journal.jsonl") if isinstance(e, kinds))


def test_the_command_line_finds_what_the_library_finds(folder: Path) -> None:
    assert tuned("--quiet").exit_code == 0
    tune(quadratic, steps=200, lr=(0.01, 1.5), cost=1.5, study=folder / "library")
    assert facts(folder / "study") == facts(folder / "library")


def test_tune_says_the_cost_first_then_lines_then_the_result(folder: Path) -> None:
    done = tuned()
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "study: 299 steps in all, as many as 1.5 runs of 200"
    assert lines[1].startswith("decision 1: 8 forks start at")
    assert any(re.match(r"fork 0 reached step 5: .* at rate .*; 5 of 299 steps \(2 %\) done", line) for line in lines)
    assert any(re.match(r"fork \d dropped: its value", line) for line in lines)
    assert any(re.match(r"fork \d+ ended best: .* \(raw weights\), .* \(averaged weights\)", line) for line in lines)
    assert "\x1b" not in done.stdout
    again = tuned()
    assert "299 of 299 steps (100 %) were done before" in again.stdout
    assert again.stdout.splitlines()[1:] == lines[-4:]


def test_quiet_prints_the_result_and_json_one_object(folder: Path) -> None:
    quiet = tuned("--quiet")
    assert quiet.stdout.startswith("fork ")
    assert "decision" not in quiet.stdout
    (folder / "study").rename(folder / "other")
    data = json.loads(tuned("--json").stdout)
    assert data["finished"]
    assert data["done_steps"] == data["total_steps"] == 299
    assert set(data["best"]["values"]) == {"raw", "averaged"}
    assert f"fork {data['best']['fork']} ended best" in quiet.stdout
    assert set(data["seconds"]) == {"training", "decide", "journal", "checkpoint"}
    assert all(fork["schedule"]["steps"] == 200 for fork in data["forks"])


def test_greedy_costs_its_forks(folder: Path) -> None:
    command = ["tune", "tests.test_cli:zero", "--steps", "60", *BOUNDS, "--preset", "greedy"]
    assert call(*command).stdout == "runs/tests.test_cli-zero: 300 steps in all, as many as 5 runs of 60\n"
    assert "120 steps in all, as many as 2 runs of 60" in call(*command, "--cost", "2.3").stdout


def test_cost_1_is_a_single_run_whose_checkpoint_is_where_it_says(folder: Path) -> None:
    done = call("tune", "tests.test_cli:quadratic", "--steps", "400", *BOUNDS, "--cost", "1", "--study", "study")
    assert "400 steps in all, as many as 1 runs of 400" in done.stdout
    where = re.search(r"its checkpoint: (\S+)", done.stdout)
    assert where is not None
    assert (folder / where[1]).exists()
    assert "judged by averaged weights" in call("show", "study").stdout
    assert call("replay", "study", "tests.test_cli:quadratic").exit_code == 0


INTERRUPTED = """
import os, signal
from paceline.problems import Quadratic, QuadraticTraining

class Interrupted(QuadraticTraining):
    def advance(self, schedule, stop):
        for step, value in super().advance(schedule, stop):
            if step >= int(os.environ.get("AT", 10**9)):
                os.kill(os.getpid(), signal.SIGINT)
            yield step, value

def make():
    return Interrupted(Quadratic(dims=20), seed=3)
"""


def test_ctrl_c_says_how_to_continue_and_continuing_ends_the_same(folder: Path) -> None:
    (folder / "train.py").write_text(INTERRUPTED)
    command = ["tune", "train:make", "--steps", "200", *BOUNDS, "--cost", "1.5"]
    cut = shell(folder, *command, "--study", "my study", AT="30")
    assert cut.returncode == 130 == 128 + signal.SIGINT
    assert "Traceback" not in cut.stderr
    assert re.search(r"stopped after \d+ of 299 steps \(\d+ %\); all of them are kept in my study", cut.stderr)
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
        ("tests.test_cli:quadratik", "module 'tests.test_cli' has no 'quadratik': it defines .*quadratic, .*seven"),
        ("tests.test_cli:NOT_CALLABLE", "tests.test_cli:NOT_CALLABLE is a int, not a function"),
        ("tests.test_cli:seven", "factory must return a Training .* got int"),
        (
            "tests.test_cli:zero",
            "the training factory raised ZeroDivisionError: division by zero at .*test_cli.py, line",
        ),
        ("tests.test_cli:diverging", "every fork failed: lower the upper bound"),
        ("broken:make", r"importing 'broken' failed at .*broken.py, line 2: NameError: name 'nothing'"),
        ("needs:make", r"importing 'needs' failed at .*needs.py, line 1: No module named 'missing_package'"),
    ],
)
def test_a_factory_that_cannot_be_used(factory: str, message: str, folder: Path) -> None:
    (folder / "broken.py").write_text("import os\nnothing\n")
    (folder / "needs.py").write_text("import missing_package\n")
    refused(call("tune", factory, *SMALL), message)


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
    refused(call("tune", "tests.test_cli:quadratic", *options), message)
    assert not (folder / "runs").exists()


def test_every_runner_can_be_named() -> None:
    assert [where.value for where in Where] == list(RUNNERS)


def test_studies_that_cannot_be_used(finished: Path) -> None:
    command = ["tune", "tests.test_cli:quadratic", "--study", "study", "--steps"]
    made = r"It was made with --steps 200 --lr 0.01 1.5 --mode min --seed 0 and takes 1.5 runs' worth"
    refused(call(*command, "240", *BOUNDS, "--cost", "1.5"), rf"other settings \(steps, total_steps\).*{made}")
    with Journal(finished / "study"):
        refused(tuned(), "study is being written by another process: wait for it")
        assert call("show", "study").exit_code == 0
    settings = json.loads((finished / "study" / "study.json").read_text())
    (finished / "study" / "study.json").write_text(json.dumps({**settings, "format": 9}))
    refused(tuned(), "in format 9, this version reads up to 1: install a newer paceline")
    refused(call("show", "study"), "in format 9")
    for name in ("show", "export"):
        refused(call(name, "elsewhere"), "elsewhere is no study: expected a folder with study.json")


def refused(done: Result, message: str) -> None:
    assert done.exit_code == 2, done.output
    assert done.stdout == "" or "steps in all" in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(message, last), last
    assert "Traceback" not in done.output


def test_a_study_that_was_stopped_before_its_first_event_is_shown(finished: Path) -> None:
    (finished / "study" / "journal.jsonl").unlink()
    shown = call("show", "study")
    assert shown.exit_code == 0, shown.output
    assert "rates from 0.01 to 1.5" in shown.output
    assert "nothing has been observed yet" in shown.output
    assert call("report", "study", "-o", "new/folder/report.html").exit_code == 0
    assert (finished / "new" / "folder" / "report.html").exists()


def test_a_folder_of_studies_names_them(finished: Path) -> None:
    refused(call("show", "."), "expected a folder with study.json, it holds studies, name one: study")
    shutil.copytree("study", "runs/a/b")
    shutil.copytree("study", "runs/a/b/checkpoints/inner")  # a study's own folders are not looked through
    shutil.copytree("study", "runs/c")
    refused(call("show", "runs"), "it holds studies, name one: a/b, c$")
    for number in range(60):
        (finished / "many" / str(number)).mkdir(parents=True)
        (finished / "many" / str(number) / "study.json").touch()
    assert "10, 11, 12" in call("show", "many").stderr
    refused(call("report", "many"), " and 10 more$")


@pytest.mark.parametrize("lr", ["--lr 1e-4", "--lr=1e-4", "--lr 1e-4,1e-1", "--lr 1e-4 high", "--lr"])
@pytest.mark.parametrize("command", ["tune", "tasks", "plan"])
def test_bounds_that_are_not_two_rates_are_refused_in_words(command: str, lr: str) -> None:
    got = lr[5:] or "nothing"
    message = f"expected two rates after --lr, the lowest and the highest, got {got}: as in --lr 1e-4 1e-1"
    refused(call(command, "tests.test_cli:quadratic", *lr.split(), "--steps", "200"), message)
    refused(call(command, "tests.test_cli:quadratic", "--steps", "200", *lr.split()), message)


def test_a_file_is_no_folder_for_a_study(folder: Path) -> None:
    (folder / "study").touch()
    refused(tuned(), "expected a folder to keep the study in, got study, where a file is in the way")


def test_the_version_can_be_asked_for() -> None:
    assert call("--version").output == f"paceline {paceline.__version__}\n"


def test_show_export_and_replay_follow_the_journal(finished: Path) -> None:
    winner = Study.open("study").finished
    assert winner is not None
    shown = call("show", "study").stdout
    for part in ("study study", "rates from 0.01 to 1.5", "8 forks start at", "won", "dropped", "ended best"):
        assert part in shown, shown
    assert json.loads(call("show", "study", "--json").stdout)["best"]["fork"] == winner.fork
    schedule = next(p.schedule for p in reversed(Study.open("study").intervals) if p.fork == winner.fork)
    assert json.loads(call("export", "study").stdout) == schedule.to_json()
    table = call("export", "study", "--format", "csv").stdout.splitlines()
    assert table[0] == "step,rate"
    assert [float(row.split(",")[1]) for row in table[1:]] == [schedule(step) for step in range(200)]
    written = call("export", "study", "--format", "python", "--output", "rate.py")
    assert written.stderr == f"wrote rate.py: fork {winner.fork} of the study study\n"
    names: dict = {}
    exec((finished / "rate.py").read_text(), names)
    assert [names["learning_rate"](step) for step in range(200)] == pytest.approx(schedule(np.arange(200)), rel=1e-12)
    assert not written.stdout
    replayed = call("replay", "study", "tests.test_cli:quadratic", "--json")
    data = json.loads(replayed.stdout)
    assert data["replay"]["steps"][-1] == data["study"]["steps"][-1] == 200
    if len(set(schedule.multipliers)) == 1:  # never cloned: the same batches, so the same run
        assert data["replay"]["values"]["raw"][-1] == data["study"]["values"]["raw"][-1]
    text = call("replay", "study", "tests.test_cli:quadratic").stdout
    assert "training 200 steps: peak rate" in text
    assert re.search(rf"ended at raw .*; fork {winner.fork} stood at raw .* at step 200", text)


def test_a_study_that_is_not_over_offers_its_best_fork_so_far(finished: Path) -> None:
    journal = finished / "study" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    rounds = [i for i, line in enumerate(lines) if b'"decided"' in line]
    journal.write_bytes(b"".join(lines[: rounds[2] + 3]))
    done = call("export", "study")
    assert done.exit_code == 0, done.output
    assert re.match(r"note: study is not over, .* are done: this is its best fork so far, \d", done.stderr)
    assert json.loads(done.stdout)["steps"] == 200
    assert "not over" in call("show", "study").stdout
    journal.write_bytes(b"".join(lines[:5]))
    refused(call("export", "study"), "study has no schedule to offer: nothing has been observed yet")
    assert "nothing has been observed yet" in call("show", "study").stdout


def test_looking_needs_no_torch(finished: Path) -> None:
    code = (
        "import sys; from paceline.cli import app; app(['show', 'study'], standalone_mode=False); "
        "assert 'torch' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    subprocess.run([sys.executable, "-c", code], cwd=finished, check=True, capture_output=True, env=environment)


def test_the_demo_compares_at_the_same_budget_and_says_what_to_open(folder: Path) -> None:
    done = call("demo", "--steps", "60", "--seed", "1")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if re.match(r"\S+ +\d\.\d+ ", line)}
    assert set(rows) == {"paceline", "constant", "cosine", "one-cycle"}
    assert int(rows["paceline"][2]) <= 138
    assert all(rows[name][2] == "180" for name in ("constant", "cosine", "one-cycle"))
    assert re.search(r"raw weights: paceline ended \d+ % (above|below) the best fixed schedule", done.stdout)
    assert re.search(r"own time: decide .* s, journal .* s, checkpoint .* s: .* % of its run, \d+ ms a", done.stdout)
    assert (folder / "runs" / "demo" / "tuned_digits.html").exists()
    assert Study.open(folder / "runs" / "demo" / "paceline").settings["seed"] == 1
