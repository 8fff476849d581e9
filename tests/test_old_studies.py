"""A study that an earlier version has begun goes on, with the checkpoints that it left."""

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline import tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Study

GOLDEN = Path(__file__).parent / "golden" / "study-2"  # in the middle of its second round
TRAINING = partial(QuadraticTraining, Quadratic(dims=4), every=4)
SETTINGS = {"steps": 80, "lr": (0.01, 1.9), "cost": 1.5, "keep": "best", "seed": 1, "quiet": True}


def test_a_study_of_format_2_is_continued_and_ends_as_a_new_one_does(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "old")
    before = (GOLDEN / "journal.jsonl").read_bytes()
    result, new = (tune(TRAINING, study=tmp_path / name, **SETTINGS) for name in ("old", "new"))
    after = (tmp_path / "old" / "journal.jsonl").read_bytes()
    assert after.startswith(before)
    assert {json.loads(line)["v"] for line in after[len(before) :].splitlines()} == {3}
    assert (result.fork, result.step) == (new.fork, new.step)
    assert result.value == pytest.approx(new.value)  # the same to the last bit on the machine that began it
    assert np.allclose(result.weights()["theta"], new.weights()["theta"])
    assert Study.open(tmp_path / "old").finished is not None


def test_a_study_of_format_2_is_read_without_being_changed(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "old")
    assert len(Study.open(tmp_path / "old").reports) == 11
    assert (tmp_path / "old" / "journal.jsonl").read_bytes() == (GOLDEN / "journal.jsonl").read_bytes()
