"""Made-up journals are read like any other."""

from pathlib import Path

import pytest

from benchmarks._journals import SHAPES, write_study
from paceline import Study


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_written_study_opens(shape: str, tmp_path: Path) -> None:
    write_study(tmp_path / "study", shape, 700)
    study = Study.open(tmp_path / "study")
    assert len(study.events) == 700
    assert study.reports
    assert bool(study.tasks) == (shape == "family")
