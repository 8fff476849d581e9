"""Families of the MNIST experiment: the published ones open from the archive, and a new one is tuned and packed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments import _mnist_families
from experiments._mnist_families import FamilyStudy, families_without, tune_families
from experiments._mnist_results import ARCHIVE, MODELS, final_value, rows
from experiments._mnist_runs import FRESH_KEYS, RANDOM_KEYS, fresh_runs, missing, random_runs
from experiments._side_by_side import PlannedRun
from experiments._svgp import EVERY, PAIRS, STEPS
from experiments.study_archive import StudyArchive
from tests.experiments.blurred_strokes import blurred_strokes
from tests.quick_families import QUICK

SEEDS = (0, 1, 2)


def test_the_published_families_are_finished() -> None:
    studies = [FamilyStudy(bounds, model, seed) for bounds in ("paper", "wide") for model in MODELS for seed in SEEDS]
    studies += families_without("wide", "ours", SEEDS)
    assert all(study.is_finished for study in studies)
    assert {study.name for study in studies} <= set(ARCHIVE.names)
    answers = studies[0].open().answers
    assert list(answers) == list(PAIRS)


def test_every_published_schedule_has_its_runs() -> None:
    for bounds in ("paper", "wide"):
        assert missing("random", random_runs(bounds, SEEDS), RANDOM_KEYS) == []
        assert missing("fresh", fresh_runs(bounds, SEEDS), FRESH_KEYS) == []
    assert all(final_value(row) > 0 for row in rows("fresh"))


def falling(runs: Sequence[PlannedRun]) -> tuple[np.ndarray, np.ndarray]:
    """Values that fall faster at higher rates, in place of real runs."""
    steps = np.arange(0, STEPS + 1, EVERY)
    progress = np.stack([np.cumsum([0.0, *(run.schedule(steps[1:] - 1) * EVERY)]) for run in runs])
    noise = np.random.default_rng(0).normal(scale=0.01, size=progress.shape)
    return steps, np.exp(-progress) + 0.1 + np.abs(noise)


def test_families_are_tuned_side_by_side_and_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = StudyArchive(tmp_path / "studies.tar.xz", tmp_path / "studies")
    data = blurred_strokes()
    monkeypatch.setattr(_mnist_families, "ARCHIVE", archive)
    monkeypatch.setattr(_mnist_families, "BUDGET", 5)
    monkeypatch.setattr(
        _mnist_families, "MODELS", {"ours": {name: QUICK[name] for name in QUICK if name != "intervals"}}
    )
    monkeypatch.setattr(_mnist_families, "side_by_side", falling)
    monkeypatch.setattr(_mnist_families, "images", lambda _: data)
    studies = [FamilyStudy("paper", "ours", seed) for seed in (0, 1)]
    tune_families(studies)
    assert not list(archive.unpacked.rglob("journal.jsonl"))
    for study in studies:
        assert study.is_finished
        assert len(study.open().intervals) == 5
        assert list(study.open().answers) == list(PAIRS)
    without = FamilyStudy("paper", "ours", 0, "2/3")
    known = without.known_runs()
    assert set(known) == set(PAIRS) - {"2/3"}
    assert sum(map(len, known.values())) == 4
