"""Logs as people keep them, read into traces."""

import json
from pathlib import Path

import numpy as np
import pytest

from paceline.errors import InputError, JournalError
from paceline.integrations import read_traces
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Study
from paceline.traces import Schedule
from paceline.tuner import tune
from paceline.views.projection import study_view
from tests.integrations.event_files import write_events


def written(path: Path, text: str) -> Path:
    path.write_text(text.replace(" ", "").lstrip("\n"))
    return path


def test_a_plain_table(tmp_path: Path) -> None:
    path = written(tmp_path / "run.csv", "step,lr,loss\n0,0.1,3\n10,0.1,2\n20,0.01,1.5\n30,0.01,1.25\n")
    (trace,) = read_traces(path)
    assert trace.steps.tolist() == [0, 10, 20, 30]
    assert trace.values.tolist() == [3, 2, 1.5, 1.25]
    assert trace.schedule == Schedule([0.1, 0.01], [0, 20, 30])
    assert trace.name == str(path)
    assert not trace.failed


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("iteration,learning_rate,value", "value"),
        ("Global_Step;Learning Rate;Train Loss", "Train Loss"),
        ("trainer/global_step\tlr-AdamW\ttrain/loss", "train/loss"),
        ("_step,train/learning_rate,eval/loss", "eval/loss"),
        ("steps,LearningRate,test_loss", "test_loss"),
        ("\ufeffstep,lr,nll", "nll"),
    ],
)
def test_columns_are_found_by_usual_names(header: str, value: str, tmp_path: Path) -> None:
    mark = next(mark for mark in "\t;," if mark in header)
    rows = [header, *(mark.join(row) for row in (("5", "0.1", "2.5"), ("10", "0.1", "2.0")))]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    (trace,) = read_traces(str(tmp_path / "log.csv"))
    assert trace.values.tolist() == [2.5, 2.0], value
    assert trace.schedule(0) == 0.1


def test_a_choice_between_columns_is_said_and_can_be_made(tmp_path: Path) -> None:
    path = written(
        tmp_path / "log.csv", "epoch,step,train_loss,val_loss,acc,lr\n0,5,3,3.5,0.1,0.1\n1,10,2,2.5,0.6,0.1\n"
    )
    with pytest.warns(
        UserWarning, match=r"the loss is read from 'val_loss', not from 'train_loss': choose with value="
    ):
        (trace,) = read_traces(path)
    assert trace.values.tolist() == [3.5, 2.5]
    assert read_traces(path, value="train_loss")[0].values.tolist() == [3, 2]
    (epochs,) = read_traces(path, step="epoch", value="acc", mode="max")
    assert epochs.steps.tolist() == [0, 1]
    assert epochs.objective.sign > 0


def test_rates_and_values_may_stand_in_rows_of_their_own(tmp_path: Path) -> None:
    text = """
step,lr,loss
0,,
0,0.0,
10,,2.0
10,0.1,
20,,1.5
30,0.1,1.25
,,
40,,1.0
40,0,
"""
    (trace,) = read_traces(written(tmp_path / "log.csv", text))
    assert trace.steps.tolist() == [10, 20, 30, 40]
    assert trace.schedule == Schedule([0.1], [0, 40])


def test_a_rate_that_was_not_logged_can_be_passed(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "step,loss\n10,2\n20,1\n")
    cosine = Schedule.of("cosine", 0.3, 20)
    assert read_traces(path, lr=0.2)[0].schedule == Schedule.constant(0.2, 20)
    assert read_traces(path, lr="0.2")[0].schedule == Schedule.constant(0.2, 20)
    assert read_traces(path, lr=cosine)[0].schedule == cosine
    with pytest.raises(InputError, match=r"must lie in \(0, inf\)"):
        read_traces(path, lr=-1.0)


def test_several_runs_in_one_table(tmp_path: Path) -> None:
    rows = [f"{run},{step},{lr},{1 / (1 + lr * step)}" for step in (10, 20) for run, lr in (("a", 0.1), ("b", 0.01))]
    path = written(tmp_path / "log.csv", "\n".join(["run,step,lr,loss", *rows]))
    traces = read_traces(path)
    assert [trace.name for trace in traces] == [f"{path}, run a", f"{path}, run b"]
    assert [trace.schedule(0) for trace in traces] == [0.1, 0.01]
    assert [len(trace.steps) for trace in traces] == [2, 2]


@pytest.mark.parametrize(
    ("losses", "kept", "failed"),
    [
        (["3", "2", "nan"], [3, 2, np.nan], True),
        (["3", "2", "inf", "nan"], [3, 2, np.inf], True),
        (["3", "", "2", ""], [3, 2], False),
        (["3", "nan", "2", "nan"], [3, 2], False),  # nan is "not measured" here
        (["nan", "3", "2"], [3, 2], False),
        (["3", "nan", "2", "inf"], [3, 2, np.inf], True),
    ],
)
def test_values_that_are_not_finite(losses: list[str], kept: list[float], failed: bool, tmp_path: Path) -> None:
    rows = [f"{10 * (i + 1)},0.1,{loss}" for i, loss in enumerate(losses)]
    (trace,) = read_traces(written(tmp_path / "log.csv", "\n".join(["step,lr,loss", *rows])))
    np.testing.assert_array_equal(trace.values, kept)
    assert trace.failed == failed


def test_a_run_that_went_back_to_a_checkpoint_is_what_it_did_after(tmp_path: Path) -> None:
    text = "step,lr,loss\n10,0.1,3\n20,0.1,2\n30,0.1,9\n20,0.05,1.9\n30,0.05,1.5\n"
    (trace,) = read_traces(written(tmp_path / "log.csv", text))
    assert trace.values.tolist() == [3, 1.9, 1.5]
    assert trace.schedule == Schedule([0.1, 0.05], [0, 20, 30])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected a line of column names and a line per observation, got 0 line\(s\)"),
        ("step,lr,loss", r"got 1 line\(s\)"),
        (
            "epoch,lr,loss\n1,1,1",
            r"no column for the step \(like step, .*\), it has 'epoch', 'lr', 'loss': name the right",
        ),
        ("step,loss\n1,1", r"no column for the learning rate .* name the right one with lr= .* pass the rate itself"),
        ("step,lr,acc\n1,1,1", r"no column for the loss \(like loss, .*'acc'.* value= \(--value-column\)"),
        ("step,lr,loss\n1,0.1,abc", r"line 2: expected a number in 'loss', got 'abc': correct it"),
        ("step,lr,loss\n1.5,0.1,1", r"line 2: expected a whole step from 0 on in 'step', got '1.5': count updates"),
        ("step,lr,loss\n1,0.1,\n2,0.1,nan", r"expected finite values, got 1 and none of them finite"),
        ("step,lr,loss\n1,0,1\n2,0,1", r"expected positive rates, got 2 and none above 0"),
        ("step,lr,loss\n1,1,1\n2,1,1\n1,1,1\n2,1,1", r"got 2 followed by 1, as in a second run: sort .* 'run'"),
    ],
)
def test_tables_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_traces(tmp_path / "log.csv")
    assert "log.csv" in str(error.value)


def test_names_that_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "step,lr,loss\n1,0.1,1\n")
    with pytest.raises(
        InputError, match=r"has no column 'lss': it has 'step', 'lr', 'loss'; value= .* takes one of these"
    ):
        read_traces(path, value="lss")
    with pytest.raises(InputError, match="has no column 'rate': it has"):
        read_traces(path, lr="rate")
    (tmp_path / "log.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    for name, got in (
        ("log.json", "a file that ends in '.json'"),
        ("empty", "a folder without"),
        ("no", "nothing there"),
    ):
        with pytest.raises(InputError, match=rf"expected a study folder, a table .* event files, got {got}"):
            read_traces(tmp_path / name)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="does not read as a table"):
        read_traces(tmp_path / "bytes.csv")


def falling(first: int, last: int, lr: float = 0.1) -> dict[str, list[tuple[int, float]]]:
    steps = range(first, last + 1, 10)
    return {"train/loss": [(s, 3 / (1 + s)) for s in steps], "train/lr": [(s, lr) for s in steps if s % 20 == 0]}


def test_folders_of_events_are_runs(tmp_path: Path) -> None:
    write_events(tmp_path / "logs" / "one" / "events.out.tfevents.1", falling(0, 100))
    write_events(tmp_path / "logs" / "two" / "events.out.tfevents.1", falling(0, 50, 0.01))
    traces = read_traces(tmp_path / "logs")
    assert [trace.name for trace in traces] == [str(tmp_path / "logs" / name) for name in ("one", "two")]
    assert [trace.last_step for trace in traces] == [100, 50]
    assert traces[1].schedule(7) == pytest.approx(0.01)
    (single,) = read_traces(tmp_path / "logs" / "one" / "events.out.tfevents.1")
    assert single.steps.tolist() == traces[0].steps.tolist()


def test_files_of_a_folder_go_on_or_begin_anew(tmp_path: Path) -> None:
    write_events(tmp_path / "logs" / "events.out.tfevents.1", falling(0, 100))
    write_events(tmp_path / "logs" / "events.out.tfevents.2", falling(50, 200, 0.05))
    (trace,) = read_traces(tmp_path / "logs")
    assert trace.steps.tolist() == list(range(0, 201, 10))
    assert trace.schedule(190) == pytest.approx(0.05)
    write_events(tmp_path / "logs" / "events.out.tfevents.3", falling(0, 30))
    assert [trace.last_step for trace in read_traces(tmp_path / "logs")] == [200, 30]


def test_tags_that_are_missing_are_said_or_left_out(tmp_path: Path) -> None:
    path = write_events(tmp_path / "logs" / "events.out.tfevents.1", {"accuracy": [(1, 0.5)]})
    with pytest.raises(
        InputError, match=r"has no tag for the loss .*, it has 'accuracy': name the right one with value="
    ):
        read_traces(path)
    assert read_traces(path, value="accuracy", lr=0.1, mode="max")[0].values.tolist() == [0.5]
    write_events(tmp_path / "logs" / "good" / "events.out.tfevents.1", falling(0, 50))
    with pytest.warns(UserWarning, match="left out: .*logs has no tag for the loss"):
        assert len(read_traces(tmp_path / "logs")) == 1


def test_what_is_true_of_several_logs_is_said_once(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        more = {"val/loss": [(0, 2.0), (10, 1.0)]}
        write_events(tmp_path / "logs" / name / "events.out.tfevents.1", {**falling(0, 50), **more})
    for name in ("bad", "worse"):
        write_events(tmp_path / "logs" / name / "events.out.tfevents.1", {"accuracy": [(1, 0.5)]})
    with pytest.warns(UserWarning, match="the loss|left out") as said:
        read_traces(tmp_path / "logs")
    chosen, left_out = (str(warning.message) for warning in said)
    assert chosen.endswith(
        "'val/loss', not from 'train/loss': choose with value= (--value-column); the same for 2 others"
    )
    assert left_out.endswith("name the right one with value= (--value-column); the same for 1 other")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "study"
    tune(lambda: QuadraticTraining(Quadratic(dims=20), seed=3), steps=200, lr=(0.01, 4.0), cost=2.3, study=folder)
    return folder


def test_the_forks_of_a_study_with_their_parents(study: Path) -> None:
    view, traces = study_view(Study.open(study).events), read_traces(study)
    assert [trace.name for trace in traces] == [f"{study}, fork {fork.fork}" for fork in view.forks]
    clones = [(fork, trace) for fork, trace in zip(view.forks, traces, strict=True) if fork.parent is not None]
    assert clones
    for fork, trace in clones:
        assert trace.parent is traces[fork.parent]
        assert trace.fork_step == fork.start
    for fork, trace in zip(view.forks, traces, strict=True):
        sound = np.isfinite(trace.values)
        assert trace.values[sound].tolist() == list(fork.values["raw"][: sound.sum()])
        assert trace.failed == (fork.state == "failed")
        assert trace.schedule == fork.schedule
    assert read_traces(str(study))[0].objective.weights == "raw"


def test_a_study_with_other_values_or_none(tmp_path: Path) -> None:
    golden = (Path(__file__).parents[1] / "golden" / "journal-1.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "study.json").write_text(json.dumps({"format": 1, "settings": json.loads(golden[0])["settings"]}))
    (tmp_path / "journal.jsonl").write_text("".join(golden))
    first, second = read_traces(tmp_path)
    assert second.parent is first
    assert second.failed
    assert second.values[0] == 3.0
    (tmp_path / "journal.jsonl").write_text(
        "".join(golden).replace('"raw":[2.5,2.25],', "").replace('"raw"', '"averaged"')
    )
    assert read_traces(tmp_path)[0].objective.weights == "averaged"
    (tmp_path / "journal.jsonl").write_text("".join(golden[:3]))
    with pytest.raises(InputError, match="expected runs with observations, got none"):
        read_traces(tmp_path)
    (tmp_path / "study.json").unlink()
    with pytest.raises(JournalError, match="is not a study"):
        read_traces(tmp_path)
