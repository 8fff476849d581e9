"""Coverage of the forecasts of one family's model."""

import numpy as np
import pytest

from experiments._mnist_families import FamilyStudy
from experiments._mnist_forecasts import coverage_of
from experiments._mnist_results import rows
from paceline.tuner import load_family


def test_the_coverage_of_a_run_is_as_published() -> None:
    study = FamilyStudy("wide", "ours", 0)
    family, traces = load_family(study.folder)
    model = family.fit(traces)
    row = next(row for row in rows("random") if row["bounds"] == "wide" and row["seed"] == 1)
    published = next(
        r
        for r in rows("coverage")
        if (r["bounds"], r["model"], r["seed"], r["kind"], r["task"], r["run"])
        == ("wide", "ours", 0, "random", row["task"], [1, row["number"], 1])
    )
    coverage = coverage_of(model, "wide", row)
    assert set(coverage) == {"task", "run", "inside", "changes", "end", "error", "error_end", "width_end"}
    # the machine and its libraries differ, and the bands are made of 400 draws
    for name in ("inside", "error", "error_end", "width_end"):
        assert coverage[name] == pytest.approx(published[name], abs=0.15)
    assert np.isfinite(coverage["changes"])
