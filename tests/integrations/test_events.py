"""Loggers hold what a study said, as their own packages read it."""

import json
import struct
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paceline import tune
from paceline.integrations import events, read_traces
from paceline.integrations.tensorboard import event_files, read_scalars
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Created, Event, Failure, Interval, Report, Study
from paceline.traces import Schedule
from tests.views.studies import KEPT

MAKE = partial(QuadraticTraining, Quadratic(noise=0.5, dims=5))


def run(folder: Path, on_event: events.OnEvent) -> Study:
    tune(MAKE, steps=80, lr=(0.01, 1.5), study=folder, on_event=on_event)
    return Study.open(folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """One study whose TensorBoard hook heard it as it ran; the other loggers hear it again."""
    folder = tmp_path_factory.mktemp("events")
    return run(folder / "study", events.tensorboard(folder / "logs"))


def again(study: Study, hook: events.OnEvent) -> None:
    for event in study.events:
        hook(event)


def expected(study: Study) -> dict[tuple[int, str], dict[int, float]]:
    """(fork, name) and what was observed at which step, straight from the journal."""
    found: dict[tuple[int, str], dict[int, float]] = {}
    schedules: dict[int, Schedule] = {}
    for event in study.events:
        if isinstance(event, Interval):
            schedules[event.fork] = event.schedule
        if isinstance(event, Report):
            for i, step in enumerate(event.steps):
                for of, values in event.values.items():
                    name = "loss" if of == "raw" else "loss averaged"
                    found.setdefault((event.fork, name), {})[step] = values[i]
                found.setdefault((event.fork, "lr"), {})[step] = schedules[event.fork](max(step - 1, 0))
    return found


def test_a_failure_is_a_line_of_text() -> None:
    (record,) = events.EventFormatter().records(Report(3, 0, 1_250, (), {}, Failure("out of memory")))
    assert (record.step, record.fork, record.text) == (1_250, None, "fork 3 failed: out of memory")


def test_tensorboard_reads_what_was_written(study: Study) -> None:
    logs = study.path.parent / "logs"
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    wanted = expected(study)
    forks = {fork for fork, _ in wanted}
    assert {path.name for path in logs.iterdir()} == {*(f"fork {n}" for n in forks), "decisions"}
    for (fork, name), series in wanted.items():
        folder = logs / f"fork {fork}"
        theirs = EventAccumulator(str(folder)).Reload()
        assert {e.step: e.value for e in theirs.Scalars(name)} == pytest.approx(series, rel=1e-6)
        ours = read_scalars(event_files(folder))
        assert dict(ours[name]) == pytest.approx(series, rel=1e-6)
    said = EventAccumulator(str(logs / "decisions"), size_guidance={"tensors": 0}).Reload()
    words = [e.tensor_proto.string_val[0].decode() for e in said.Tensors("decisions/text_summary")]
    assert any("forks start at" in line for line in words)
    assert f"fork {study.events[-1].fork} won" in words[-1]  # pyright: ignore[reportAttributeAccessIssue]


def test_forks_can_be_planned_from_their_tensorboard_logs(study: Study) -> None:
    logs = study.path.parent / "logs"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # decisions are no run
        traces = read_traces(logs)
    assert len(traces) == len({fork for fork, _ in expected(study)})


def test_mlflow_reads_what_was_written(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no database
    uri = (tmp_path / "mlruns").as_uri()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import MlflowClient

        again(study, events.mlflow(experiment="digits", run_name="first", tracking_uri=uri))
        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("digits")
        assert experiment is not None
        (found,) = client.search_runs([experiment.experiment_id])
        assert (found.info.status, found.info.run_name) == ("FINISHED", "first")
        for (fork, name), series in expected(study).items():
            history = client.get_metric_history(found.info.run_id, f"fork {fork}/{name}")
            assert {m.step: m.value for m in history} == pytest.approx(series)
        words = Path(client.download_artifacts(found.info.run_id, "decisions.txt")).read_text()
    assert "forks start at" in words
    assert "won" in words.splitlines()[-1]


def test_weights_and_biases_holds_it_offline(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again(study, events.wandb(project="digits", dir=str(tmp_path)))
        rows = _whole_history(next((tmp_path / "wandb").glob("offline-run-*/*.wandb")))
    for (fork, name), series in expected(study).items():
        mine = [row for row in rows if f"fork {fork}/{name}" in row]
        assert {row[f"fork {fork}/step"]: row[f"fork {fork}/{name}"] for row in mine} == pytest.approx(series)
    words = [row["decisions/text"] for row in rows if "decisions/text" in row]
    assert "won" in words[-1]


def _whole_history(path: Path, seconds: float = 30.0) -> list[dict[str, Any]]:
    """The rows up to the last, which says who won: the process that writes them may end after `finish` returns."""
    until = time.monotonic() + seconds
    while True:
        rows = _history(path)
        if (rows and "won" in str(rows[-1].get("decisions/text"))) or time.monotonic() > until:
            return rows
        time.sleep(0.1)


def _history(path: Path) -> list[dict[str, Any]]:
    """The rows of an offline run, parsed by the package's own messages; the file around them is LevelDB's log."""
    from wandb.proto import wandb_internal_pb2

    content, rows, part, at = path.read_bytes(), [], b"", 7  # past the file's header
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # no record begins this close to the end of a block
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        part += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(part)
            part = b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items})
    return rows


def test_several_hooks_are_one_and_a_continued_study_keeps_its_rates(tmp_path: Path) -> None:
    heard: list[Event] = []

    def stop(event: Event) -> None:
        if isinstance(event, Report):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "study", events.each(heard.append, stop))
    assert isinstance(heard[0], Created)
    written: list[events.LogRecord] = []

    class Memory(events.Writer):
        closed = 0

        def write(self, records: "Sequence[events.LogRecord]") -> None:
            written.extend(records)

        def close(self) -> None:
            self.closed += 1

    memory = Memory()
    run(tmp_path / "study", events.Log(memory, tmp_path / "study"))
    assert memory.closed == 1
    of_forks = [record for record in written if record.fork is not None]
    assert of_forks
    assert all("lr" in record.numbers for record in of_forks)


def test_a_failed_fork_leaves_out_what_is_no_number() -> None:
    formatter = events.EventFormatter()
    failed = Report(2, 0, 20, (10, 20), {"raw": (1.0, float("nan"))}, Failure("raised", "came apart"))
    records = formatter.records(failed)
    assert [record.numbers for record in records] == [{"loss": 1.0}, {}, {}]
    assert records[-1].text == "fork 2 failed: came apart"
    formatter.records(Created({"mode": "max"}))
    records = formatter.records(Report(2, 0, 10, (10,), {"averaged": (0.5,)}))
    assert records[0].numbers == {"value averaged": 0.5}


def test_the_best_moment_is_a_number_and_the_end_says_its_step() -> None:
    formatter = events.EventFormatter()
    records = [record for event in KEPT for record in formatter.records(event)]
    best = [
        (record.fork, record.step, record.numbers["best loss"]) for record in records if "best loss" in record.numbers
    ]
    assert best == [(0, 20, 1.5), (1, 20, 1.2), (2, 60, 0.8)]
    said = [record.text for record in records if record.text]
    assert "fork 0 ended: it has turned for the worse since its best value, 1.5 at step 20" in said
    assert said[-1] == "fork 2 won with value 0.8 (averaged weights) at step 60; it ended with 1.45"
