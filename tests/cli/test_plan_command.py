"""`paceline plan`: the library's plan, written to files, and logs that cannot be planned from."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import Result

from paceline.planning import plan_from
from paceline.traces import Schedule
from tests.cli import command_line
from tests.integrations.event_files import write_events
from tests.recorded_runs import COSINES, STEPS, losses, write_table


@pytest.fixture
def table(folder: Path) -> Path:
    return write_table(folder / "old.csv")


def call(*arguments: str | Path) -> Result:
    return command_line.call("plan", *map(str, arguments))


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


def test_the_command_finds_what_the_library_finds(folder: Path, table: Path) -> None:
    view = plan_from([table])
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
