"""Which trial runs which fork, and the states that forks begin from."""

from pathlib import Path

import pytest

pytest.importorskip("ray.tune")

from paceline.integrations.ray_tune.trial_record import TrialRecord


def checkpoint(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "state.pt").write_text(text)
    return folder


def test_a_record_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    record = TrialRecord(tmp_path / "study")
    assert (record.count, record.fork_of, record.metrics) == (0, {}, {})
    record.count, record.fork_of = 2, {"a": 0, "b": 1}
    record.add_state((1, 30), checkpoint(tmp_path / "ray", "weights"), {"loss": 0.5, "done": True, "config": {}})
    again = TrialRecord(tmp_path / "study")
    assert (again.count, again.fork_of) == (2, {"a": 0, "b": 1})
    assert again.metrics_of((1, 30)) == {"loss": 0.5, "done": True}  # a dict is no plain value
    assert (again.checkpoint((1, 30)) / "state.pt").read_text() == "weights"


def test_a_state_survives_when_ray_deletes_its_checkpoint_and_replaces_an_interrupted_one(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    record = TrialRecord(tmp_path / "study")
    source = checkpoint(tmp_path / "first", "old")
    record.add_state((0, 10), source, {})
    record.add_state((0, 10), checkpoint(tmp_path / "second", "new"), {})
    for folder in ("first", "second"):
        (tmp_path / folder / "state.pt").unlink()
    assert (record.checkpoint((0, 10)) / "state.pt").read_text() == "new"


def test_states_that_nothing_begins_from_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    record = TrialRecord(tmp_path / "study")
    for fork in range(3):
        record.add_state((fork, 10), checkpoint(tmp_path / str(fork), "weights"), {"fork": fork})
    record.keep_only({(1, 10), (7, 10)})
    assert sorted(path.name for path in (tmp_path / "study" / "checkpoints").iterdir()) == ["1-10"]
    assert set(TrialRecord(tmp_path / "study").metrics) == {"1-10"}


def test_only_names_of_states_are_ever_deleted(tmp_path: Path) -> None:
    (tmp_path / "study" / "checkpoints").mkdir(parents=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "study" / "trials.json").write_text('{"metrics": {"../../precious": {}, "0-10": {}}}')
    record = TrialRecord(tmp_path / "study")
    assert set(record.metrics) == {"0-10"}
    record.keep_only(set())
    assert (tmp_path / "precious").exists()
