"""A task that its family leaves out, in `experiments.mnist`: one run by each method, from the same start."""

import time
from collections.abc import Sequence
from typing import Any

from experiments._mnist_families import FamilyStudy
from experiments._mnist_results import BOUNDS, FAMILY, add_row, rows
from experiments._svgp import STEPS, factory
from paceline import tune, warm_start

WARM_STARTS: dict[str, dict[str, Any]] = {"warm start": {}, "universal": {"method": "universal"}}


def run_new_tasks(families: Sequence[FamilyStudy]) -> None:
    """Run what is missing of the tasks that families leave out."""
    done = {(*(row[name] for name in FAMILY), row["task"], row["method"]) for row in rows("new_task")}
    for family in families:
        for method in (*WARM_STARTS, "cold"):
            key = (family.bounds, family.model, family.seed, family.without, method)
            if key in done:
                continue
            row = run_new_task(family, method)
            add_row("new_task", row)
            print(f"{', '.join(map(str, key))}: {row['seconds']} s", flush=True)


def run_new_task(family: FamilyStudy, method: str) -> dict[str, Any]:
    """One run of the task that a family leaves out: a warm start, or a cold one that costs the same."""
    began = time.perf_counter()
    make_new = factory(family.without, family.seed, average=method == "cold")
    if method == "cold":
        result = tune(make_new, steps=STEPS, lr=BOUNDS[family.bounds], cost=1.0, seed=family.seed, quiet=True)
    else:
        result = warm_start(family.folder, make_new, seed=family.seed, quiet=True, **WARM_STARTS[method])
    steps, values = result.history.fork(result.fork).raw.path()
    return {
        "bounds": family.bounds,
        "model": family.model,
        "seed": family.seed,
        "task": family.without,
        "method": method,
        "value": float(values[-1]),
        "returned": float(result.value),
        "steps": steps.tolist(),
        "values": values.round(6).tolist(),
        "schedule": result.schedule.to_json(),
        "seconds": round(time.perf_counter() - began, 1),
    }
