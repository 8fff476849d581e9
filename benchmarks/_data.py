"""Where the large data lie: $PACELINE_DATA, else ../shared/data beside the checkout (docs/experiments.md)."""

import csv
import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from paceline import Schedule, Trace
from paceline.shapes import Recorded

LLM_WARMUP = 2_160  # steps, linear, to the peak of 3e-4


def folder() -> Path:
    """The folder with the data sets, or an exit that says so."""
    here = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("PACELINE_DATA"), here.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    sys.exit("this needs data sets: set PACELINE_DATA to the folder that holds them (docs/experiments.md says which)")


def llm_curves() -> dict[str, dict[str, np.ndarray]]:
    """Loss curves of a 25M-parameter language model under nine schedules: name -> step, lr, loss."""
    curves = {}
    for path in sorted((folder() / "llm_curves_25m").glob("*.csv")):
        with path.open() as file:
            rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
        curves[path.stem] = dict(zip(("step", "lr", "loss"), np.array(rows).T, strict=True))
    return curves


def llm_traces() -> dict[str, Trace]:
    """The same curves as traces, with the warm-up that their rows leave out: the law needs every update's rate.

    A row at step n is measured after n updates, so a rate that changes at it acts only afterwards.
    """
    traces = {}
    for name, curve in llm_curves().items():
        steps, rates = curve["step"].astype(int), curve["lr"]
        later = Schedule.from_table(steps, rates)
        rows = np.unique(np.concatenate([np.arange(0, LLM_WARMUP, 10), [LLM_WARMUP - 1, LLM_WARMUP], steps - 1, steps]))
        rising = rates[0] * (rows + 1) / LLM_WARMUP
        base = Recorded(tuple(rows.tolist()), tuple(np.where(rows < LLM_WARMUP, rising, later(rows)).tolist()))
        schedule = Schedule([1.0], [0, int(steps[-1])], base=base)
        traces[name] = Trace(steps, curve["loss"], schedule, name=name)
    return traces


def search_runs(name: str) -> list[dict[str, Any]]:
    """Runs of a random search, one record each."""
    with lzma.open(folder() / f"curves_{name}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]
