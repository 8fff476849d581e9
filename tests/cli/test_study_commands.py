"""`show`, `export`, `replay` and `report` of a study, and studies that cannot be used."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paceline.study import Journal, Study
from tests.cli.command_line import BOUNDS, SOURCE, call, refused, tuned


def test_studies_that_cannot_be_used(finished: Path) -> None:
    command = ["tune", "tests.cli.command_line:quadratic", "--study", "study", "--steps"]
    made = r"It was made with --steps 200 --lr 0.01 1.5 --mode min --seed 0 and takes 1.5 runs' worth"
    refused(call(*command, "240", *BOUNDS, "--cost", "1.5"), rf"other settings \(steps, total_steps\).*{made}")
    with Journal(finished / "study"):
        refused(tuned(), "study is being written by another process: wait for it")
        assert call("show", "study").exit_code == 0
    settings = json.loads((finished / "study" / "study.json").read_text())
    (finished / "study" / "study.json").write_text(json.dumps({**settings, "format": 9}))
    refused(tuned(), "in format 9, this version reads up to 3: install a newer paceline")
    refused(call("show", "study"), "in format 9")
    for name in ("show", "export"):
        refused(call(name, "elsewhere"), "elsewhere is not a study: expected a folder with study.json")


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
    replayed = call("replay", "study", "tests.cli.command_line:quadratic", "--json")
    data = json.loads(replayed.stdout)
    assert data["replay"]["steps"][-1] == data["study"]["steps"][-1] == 200
    if len(set(schedule.multipliers)) == 1:  # never cloned: the same batches, so the same run
        assert data["replay"]["values"]["raw"][-1] == data["study"]["values"]["raw"][-1]
    text = call("replay", "study", "tests.cli.command_line:quadratic").stdout
    assert "training 200 steps: peak rate" in text
    assert re.search(rf"the replay ended at raw .*; fork {winner.fork} at raw .* at step 200", text)


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
