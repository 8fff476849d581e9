"""Rows of a comparison: what is missing is run, what is there is not, and ratios are paired by seed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._runs import Key, complete, geometric_mean, load, ratios


def square(key: Key) -> dict[str, Any]:
    return {"raw": float(key[2] ** 2)}


def test_only_missing_runs_are_made_and_a_torn_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"problem": "a", "method": "m", "seed": 1, "raw": -1.0}) + "\n" + '{"problem": "a", "me')
    assert set(load(path)) == {("a", "m", 1)}
    path.write_text(path.read_text().splitlines()[0] + "\n")
    rows = complete(path, [("a", "m", 1), ("a", "m", 2)], square, jobs=1)
    assert {key: row["raw"] for key, row in rows.items()} == {("a", "m", 1): -1.0, ("a", "m", 2): 4.0}
    assert load(path) == rows


def test_without_jobs_and_after_the_limit_nothing_is_run(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert complete(path, [("a", "m", 1)], square, jobs=0) == {}
    assert complete(path, [("a", "m", 1)], square, jobs=1, limit=-1.0) == {}


def test_the_ratio_to_hindsight_is_of_means_over_the_same_seeds() -> None:
    rows = {("p", "m", s): {"raw": v} for s, v in enumerate((2.0, 4.0))}
    rows |= {("p", "hindsight", s): {"raw": v} for s, v in enumerate((1.0, 2.0))}
    assert ratios(rows, "m", "p", range(2), "raw") == (2.0, pytest.approx(0.0))
    assert np.isnan(ratios(rows, "m", "p", range(3), "raw")[0])
    rows["p", "m", 1] = {"raw": None}
    with np.errstate(invalid="ignore"):
        assert ratios(rows, "m", "p", range(2), "raw")[0] == np.inf


def test_the_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
