"""Settings and results of `experiments.mnist`: rows as JSON lines, family studies in `studies.tar.xz`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import machine, read_rows
from experiments._svgp import STEPS
from experiments.study_archive import StudyArchive
from paceline.strategy.multitask import Space
from paceline.traces import LearningRateRange

FOLDER = Path(__file__).parent / "results" / "mnist"
ARCHIVE = StudyArchive(FOLDER / "studies.tar.xz", FOLDER / "studies")
BOUNDS = {"paper": (1e-5, 1e-3), "wide": (1e-5, 1e-1)}
INTERVALS, BUDGET = 5, 20
MODELS: dict[str, dict[str, Any]] = {
    # section 4.3: the ELBO itself, exponential link, NARX(1), L = 2, N_0 = 5
    "paper": {"link": "exponential", "order": 1, "summed_rate": False, "transform": "identity", "initial": 5},
    "ours": {},  # the defaults: log scale, signed link, NARX(2) and the summed rate, two first runs for each task
}
FAMILY = ("bounds", "model", "seed")  # fields that tell families apart


def space(bounds: str) -> Space:
    """The schedules that are searched."""
    return Space(LearningRateRange(*BOUNDS[bounds]), STEPS, INTERVALS)


def rows(file: str) -> list[dict[str, Any]]:
    """The rows of a file; none if there is no file yet."""
    return read_rows(FOLDER / f"{file}.jsonl")


def add_row(file: str, row: dict[str, Any]) -> None:
    """Add a row, with the machine that it was measured on."""
    with (FOLDER / f"{file}.jsonl").open("a") as out:
        out.write(json.dumps({**row, "machine": _machine()}) + "\n")


@cache
def _machine() -> str:
    return machine()


def final_value(row: dict[str, Any]) -> float:
    """The last value of a run; infinite if it failed."""
    value = float(row["values"][-1])
    return value if np.isfinite(value) else np.inf
