"""Coverage of forecasts in `experiments.mnist`: how often a 90 % band holds runs that the model was not fitted to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._mnist_families import FamilyStudy
from experiments._mnist_results import FAMILY, MODELS, add_row, rows, space
from paceline import TraceModel
from paceline.tuner import load_family

KINDS = ("random", "random, same start", "found")  # the second: inducing points and data order as in the family's runs
LOWEST = 1e-3  # values below are not told apart on the log scale


def measure_coverage(bounds: str, seeds: Sequence[int]) -> None:
    """Forecast runs that each family's model was not fitted to, and add a row for each of them."""
    done = {(*(row[name] for name in FAMILY), row["kind"]) for row in rows("coverage")}
    for seed in seeds:
        for model in MODELS:
            study = FamilyStudy(bounds, model, seed)
            kinds = [kind for kind in KINDS if (bounds, model, seed, kind) not in done]
            if not kinds or not study.is_finished:
                continue
            family, traces = load_family(study.folder)
            fitted = family.fit(traces)
            held_out = _held_out(study)
            for kind in kinds:
                for row in held_out[kind]:
                    common = {"bounds": bounds, "model": model, "seed": seed, "kind": kind}
                    add_row("coverage", {**common, **coverage_of(fitted, bounds, row)})
            print(f"coverage of {study.name}", flush=True)


def _held_out(study: FamilyStudy) -> dict[str, list[dict[str, Any]]]:
    """Runs that a family's model was not fitted to, by kind."""
    random = [row for row in rows("random") if row["bounds"] == study.bounds]
    recommended = (study.bounds, study.seed, study.model)
    return {
        "random": [row for row in random if row["seed"] != study.seed],
        "random, same start": [row for row in random if row["seed"] == study.seed],
        "found": [row for row in rows("fresh") if (row["bounds"], row["seed"], row["method"]) == recommended],
    }


def coverage_of(model: TraceModel, bounds: str, row: dict[str, Any]) -> dict[str, Any]:
    """The forecast of a run, from its first step, against what it showed."""
    steps = row["steps"][1:]
    forecast = model.forecast(space(bounds).schedule(row["x"]), steps, task=row["task"], draws=400)
    (low, high), values = forecast.band(0.9), np.array(row["values"][1:])
    inside = (low <= values) & (values <= high)
    errors = np.log(forecast.median.clip(LOWEST) / values)
    return {
        "task": row["task"],
        "run": [row["seed"], row.get("number", 0), row["run_seed"]],
        "inside": float(inside.mean()),
        "changes": float(inside[np.isin(steps, space(bounds).change_points)].mean()),
        "end": bool(inside[-1]),
        "error": float(np.abs(errors).mean()),
        "error_end": float(errors[-1]),
        "width_end": float(np.log(high[-1].clip(LOWEST) / low[-1].clip(LOWEST))),
    }
