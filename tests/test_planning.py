"""From logs to a plan, through the library and through the command."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from paceline.cli import app
from paceline.planning import plan_from
from paceline.problems import Quadratic, QuadraticTraining
from paceline.shapes import WarmupStableDecay
from paceline.study import Study
from paceline.traces import Schedule
from paceline.tuner import tune
from paceline.views.plan import PlanView
from tests.integrations.event_files import write_events

STEPS = np.arange(10, 401, 10)
COSINES = [Schedule.of("cosine", peak, 400) for peak in (0.01, 0.1)]


def losses(schedule: Schedule) -> np.ndarray:
    """A loss that falls with the sum of the rates, and is higher while the rate is."""
    return 0.2 + (1 + np.cumsum(schedule(np.arange(400)))) ** -0.7 + 2 * schedule(np.arange(400)) ** 0.8


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "old.csv"
    rows = [f"{i},{s},{run(s - 1)},{losses(run)[s - 1]}" for i, run in enumerate(COSINES) for s in STEPS.tolist()]
    path.write_text("\n".join(["run,step,lr,loss", *rows]))
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    tune(lambda: QuadraticTraining(Quadratic(dims=20), seed=3), steps=200, lr=(0.01, 4.0), cost=1.5, study=folder)
    return folder


@pytest.fixture(scope="module")
def view(table: Path) -> PlanView:
    return plan_from([table])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_a_table_is_enough_for_a_plan(table: Path, view: PlanView) -> None:
    assert view.sources == (f"{table} (2 runs)",)
    assert (view.observations, view.failed, view.steps) == (80, 0, 400)
    assert view.lr == pytest.approx((0.001, 0.1), rel=0.01)
    assert view.plan.low < view.plan.median < view.plan.high
    assert view.plan.median <= view.usual[0].median + 0.01
    assert {outlook.name for outlook in view.usual} == {
        "constant",
        "linear",
        "cosine",
        "one-cycle",
        "warm-up-stable-decay",
    }
    assert [o.median for o in view.usual] == sorted(o.median for o in view.usual)
    cosine = next(outlook for outlook in view.usual if outlook.name == "cosine")
    assert cosine.low < losses(COSINES[1])[-1] < cosine.high  # it was run: the law must know
    assert view.recorded[0].value == pytest.approx(losses(COSINES[1])[STEPS[-5:] - 1].mean())
    assert view.best is not None
    assert view.best.rates[0] == pytest.approx(0.1, rel=0.01)
    assert view.forecast.steps[-1] == 400


def test_a_study_is_enough_for_a_plan(study: Path) -> None:
    view = plan_from([study])
    finished = Study.open(study).finished
    assert finished is not None
    assert view.recorded[0].description == (
        f"fork {finished.fork}, the winner, raw weights, mean of the last 5 values; "
        f"its schedule: paceline export {study}"
    )
    assert view.steps == 200
    assert view.lr[0] == 0.01
    assert isinstance(view.schedule.base, WarmupStableDecay)
    assert view.schedule.base.warmup > 0.01  # as all forks had
    assert any("every run near the highest rate warmed up" in caveat for caveat in view.caveats)
    winner = [p.schedule for p in Study.open(study).intervals if p.fork == finished.fork][-1]
    assert view.schedule.multipliers.max() <= 1.001 * winner.multipliers.max()


def test_what_a_plan_goes_beyond_is_said(table: Path) -> None:
    view = plan_from([table], steps=2000, lr=(1e-3, 0.02), family="free", quantile=0.3)
    assert view.schedule.steps == 2000
    assert view.schedule.multipliers.max() == pytest.approx(0.02)
    text = " ".join(view.caveats)
    assert "no run was longer than 400 steps: what comes after is extrapolated" in text
    assert "is the highest in the search" in text


def test_a_run_that_failed_lowers_the_bound(table: Path, tmp_path: Path) -> None:
    (tmp_path / "high.csv").write_text("step,lr,loss\n10,3,2\n20,3,50\n30,3,nan\n")
    view = plan_from([table, tmp_path / "high.csv"])
    assert view.failed == 1
    assert view.lr[1] == pytest.approx(0.1, rel=0.01)
    (tmp_path / "bad.csv").write_text("\n".join(["step,lr,loss", *(f"{s},3,{s}" for s in range(1, 12)), "12,3,inf"]))
    bad = plan_from([tmp_path / "bad.csv"])
    assert bad.schedule.multipliers.max() <= 0.3
    assert bad.recorded == ()
    assert bad.best is None


def test_a_log_of_tensorboard_through_the_command(folder: Path) -> None:
    for i, run in enumerate(COSINES):
        points = {"lr-SGD": run(STEPS - 1), "eval/loss": losses(run)[STEPS - 1]}
        series = {tag: list(zip(STEPS.tolist(), map(float, column), strict=True)) for tag, column in points.items()}
        write_events(folder / "logs" / str(i) / "events.out.tfevents.1", series)
    done = call("logs", "--figure", "plan.html", "--out", "plans/next.json")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "learnt from 2 runs, 80 observations: logs (2 runs)"
    assert "plan for a run of 400 steps" in lines
    assert any(re.match(r"peak rate 0\.\d+: warm-up over \d+ steps", line) for line in lines)
    assert any(re.match(r"the plan +0\.\d+ +0\.\d+ +0\.\d+ to 0\.\d+", line) for line in lines)
    assert any(
        re.match(r"recorded: logs/1 ended at 0\.\d+, step 400 \(mean of the last 5 values\)", line) for line in lines
    )
    assert lines[-3:-1] == ["schedule: plans/next.json", "figure: plan.html"]
    assert lines[-1].startswith(
        "to use it: from paceline.integrations import lambda_lr; lambda_lr(optimizer, paceline.S"
    )
    assert "\x1b" not in done.stdout
    assert Schedule.load("plans/next.json").steps == 400
    assert "the plan: forecast and 90 % band" in Path("plan.html").read_text()


def test_the_command_finds_what_the_library_finds(folder: Path, table: Path, view: PlanView) -> None:
    data = json.loads(call(table, "--json").stdout)
    assert data["out"] == "schedule.json"
    assert Schedule.load("schedule.json") == view.schedule == Schedule.from_json(data["schedule"])
    assert data["plan"]["median"] == view.plan.median
    assert len(data["usual"]) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: expected a study folder, a table .* got nothing there"),
        (["few.csv"], "expected at least 10 observations to plan from, got 2"),
        (["few.csv", "./few.csv"], "expected each source once, got few.csv several times"),
        (["few.csv", "--value-column", "acc"], "has no column 'acc': it has 'step', 'lr', 'loss'"),
        (["few.csv", "--figure", "plan.doc"], "expected a figure that ends in .html"),
        (["good.csv", "--lr", "1", "0.1"], "swap them"),
        (["good.csv", "--lr", "1", "2"], "these runs worked at rates up to 0.1: lower the bound"),
        (["good.csv", "--quantile", "2"], r"quantile must lie in \(0, 1\), got 2.0"),
    ],
)
def test_what_cannot_be_planned(arguments: list[str], message: str, folder: Path) -> None:
    (folder / "few.csv").write_text("step,lr,loss\n10,0.1,2\n20,0.1,1\n")
    rows = [f"{s},0.1,{1 + (1 + s) ** -0.5}" for s in STEPS]
    (folder / "good.csv").write_text("\n".join(["step,lr,loss", *rows]))
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert re.search(f"error: .*{message}", done.stderr), done.stderr
    assert not (folder / "schedule.json").exists()


@pytest.mark.filterwarnings("default")
def test_a_choice_of_columns_is_a_note(folder: Path) -> None:
    rows = [f"{s},0.1,{1 + (1 + s) ** -0.5},{2 + (1 + s) ** -0.5}" for s in STEPS]
    (folder / "log.csv").write_text("\n".join(["step,lr,train_loss,val_loss", *rows]))
    done = call("log.csv")
    assert "note: log.csv: the loss is read from 'val_loss', not from 'train_loss': choose with value=" in done.stderr
    assert done.exit_code == 0
    shutil.copy("log.csv", "again.csv")
    (note,) = call("log.csv", "again.csv").stderr.splitlines()
    assert re.match(r"note: log.csv: the loss .* \(--value-column\); the same for 1 other$", note), note
