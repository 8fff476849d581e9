"""Runs of given schedules in `experiments.mnist`: random search, and fresh runs of the schedules that were found."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments._mnist_families import FamilyStudy, batched, planned_run
from experiments._mnist_results import BOUNDS, INTERVALS, MODELS, add_row, final_value, rows, space
from experiments._side_by_side import side_by_side
from experiments._svgp import PAIRS
from paceline import Schedule

RUNS_PER_TASK = 4  # of random search
FRESH = (1000, 1001)  # seeds of runs that judge schedules, which no method sees
FRESH_KEYS = ("bounds", "seed", "task", "method", "run_seed")
RANDOM_KEYS = ("bounds", "seed", "task", "number")


def missing(file: str, selected: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The rows that a file does not hold yet."""
    done = {tuple(row[key] for key in keys) for row in rows(file)}
    return [row for row in selected if tuple(row[key] for key in keys) not in done]


def run_missing(file: str, selected: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
    """Run what is missing: rows with task, bounds, x and run_seed, told apart by `keys`."""
    for batch in batched(missing(file, selected, keys)):
        began = time.perf_counter()
        runs = [planned_run(row["task"], space(row["bounds"]).schedule(row["x"]), row["run_seed"]) for row in batch]
        steps, values = side_by_side(runs)
        for row, observed in zip(batch, values, strict=True):
            add_row(file, {**row, "steps": steps.tolist(), "values": [round(v, 6) for v in observed.tolist()]})
        print(f"{len(batch)} runs for {file}: {time.perf_counter() - began:.0f} s", flush=True)


def random_runs(bounds: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Random search: four schedules for each task, uniform on the log scale, from the same start as the family's."""
    runs = list[dict[str, Any]]()
    for seed in seeds:
        rng = np.random.default_rng([seed, 77])
        for task in PAIRS:
            for number in range(RUNS_PER_TASK):
                x = rng.uniform(size=INTERVALS).round(4).tolist()
                runs.append({"bounds": bounds, "seed": seed, "task": task, "number": number, "x": x, "run_seed": seed})
    return runs


def schedules_of_methods(bounds: str, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The schedule of each method for each task, with the value that the method observed or expects of it."""
    for seed in seeds:
        for model in MODELS:
            family = FamilyStudy(bounds, model, seed)
            if not family.is_finished:
                continue
            study = family.open()
            for task, answer in study.answers.items():
                best = study.best[task]
                common = {"bounds": bounds, "seed": seed, "task": task}
                yield {**common, "method": model, "x": _x(bounds, answer.schedule), "expected": answer.median}
                yield {**common, "method": f"{model}, best run", "x": _x(bounds, best.schedule), "expected": best.value}
        for task in PAIRS:
            random = [r for r in rows("random") if (r["bounds"], r["seed"], r["task"]) == (bounds, seed, task)]
            if random:
                best = min(random, key=final_value)
                common = {"bounds": bounds, "seed": seed, "task": task}
                yield {**common, "method": "random search", "x": best["x"], "expected": final_value(best)}


def constant_rates(bounds: str) -> Iterator[dict[str, Any]]:
    """For orientation: constant rates, not tuned."""
    low, high = np.log10(BOUNDS[bounds])
    for task in PAIRS:
        for rate in (-3.0,) if bounds == "paper" else (-3.0, -2.0, -1.5, -1.0):
            x = [round((rate - low) / (high - low), 4)] * INTERVALS
            common = {"bounds": bounds, "seed": -1, "task": task, "expected": None}
            yield {**common, "method": f"constant {10**rate:.0e}", "x": x}


def fresh_runs(bounds: str, seeds: Sequence[int], *, of_best_runs: bool = False) -> list[dict[str, Any]]:
    """Runs that judge schedules on seeds that no method has seen.

    Args:
        bounds: a key of `BOUNDS`.
        seeds: of the methods.
        of_best_runs: the schedules of the families' best runs, in place of those that the methods recommend.
    """
    schedules = [row for row in schedules_of_methods(bounds, seeds) if of_best_runs == ("best run" in row["method"])]
    schedules += [] if of_best_runs else constant_rates(bounds)
    return [{**row, "run_seed": seed} for row in schedules for seed in FRESH]


def _x(bounds: str, schedule: Schedule) -> list[float]:
    return space(bounds).x_of(schedule).round(4).tolist()
