from pathlib import Path

import numpy as np
import pytest

from paceline.errors import JournalError
from paceline.study import digest_of_runs, load_known_runs, save_known_runs, with_parents
from paceline.traces import Objective, Schedule, Trace

FIRST = Trace(np.array([10, 20]), np.array([3.0, 2.0]), Schedule.constant(0.1, 40), task="calm", name="0")
CLONE = FIRST.fork([30, 40], [1.0, np.nan], Schedule([0.1, 0.2], [0, 20, 40], 40), name="1", failed=True)


def test_an_ancestor_comes_before_its_clones_and_once() -> None:
    assert with_parents([CLONE, FIRST, CLONE]) == [FIRST, CLONE]


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    save_known_runs(tmp_path, [CLONE])
    first, clone = load_known_runs(tmp_path, digest_of_runs([FIRST, CLONE]))
    assert clone.parent is first
    assert clone.failed
    assert (clone.fork_step, clone.name, clone.task) == (20, "1", "calm")
    assert clone.schedule == CLONE.schedule
    assert clone.objective == Objective()
    assert np.array_equal(clone.values, CLONE.values, equal_nan=True)
    assert first.steps.tolist() == [10, 20]


def test_a_study_without_known_runs_has_none(tmp_path: Path) -> None:
    assert load_known_runs(tmp_path) == []


def test_runs_that_were_edited_or_removed_are_refused(tmp_path: Path) -> None:
    save_known_runs(tmp_path, [FIRST])
    digest = digest_of_runs([FIRST])
    path = tmp_path / "known.jsonl"
    path.write_text(path.read_text().replace("3.0", "3.5"))
    with pytest.raises(JournalError, match="has changed since the study started: it was edited, restore it"):
        load_known_runs(tmp_path, digest)
    path.write_text("{}\n")
    with pytest.raises(JournalError, match=r"cannot be read .*: it was removed or damaged, restore it"):
        load_known_runs(tmp_path, digest)
    path.unlink()
    with pytest.raises(JournalError, match="cannot be read"):
        load_known_runs(tmp_path, digest)
