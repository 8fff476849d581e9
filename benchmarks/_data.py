"""Where the large data lie: $PACELINE_DATA, else ../shared/data beside the checkout."""

import csv
import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def folder() -> Path:
    """The folder with the data sets, or an exit that says where to put them."""
    here = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("PACELINE_DATA"), here.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    sys.exit(
        "this benchmark needs the data sets: set PACELINE_DATA to the folder that holds llm_curves_25m and curves_*"
    )


def llm_curves() -> dict[str, dict[str, np.ndarray]]:
    """Loss curves of a 25M-parameter language model under nine schedules: name -> step, lr, loss."""
    curves = {}
    for path in sorted((folder() / "llm_curves_25m").glob("*.csv")):
        with path.open() as file:
            rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
        curves[path.stem] = dict(zip(("step", "lr", "loss"), np.array(rows).T, strict=True))
    return curves


def search_runs(name: str) -> list[dict[str, Any]]:
    """Runs of a random search, one record each."""
    with lzma.open(folder() / f"curves_{name}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]
