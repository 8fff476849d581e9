"""The runs of `experiments.mnist`: families by ask and tell, random search, fresh runs of what was found, a new task.

Everything is kept as it comes, under results/mnist: studies as folders, the rest as JSON lines, so that what is there
is not made again. Studies that wait for a run at the same time make theirs side by side; each decides from its own.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import machine, read_rows
from experiments._side_by_side import Planned, side_by_side
from experiments._svgp import PAIRS, STEPS, factory, images, seed_of
from paceline import Schedule, Study, Trace, Tuner, tune, warm_start
from paceline.settings import FamilySettings
from paceline.strategy import MultiTask
from paceline.strategy.multitask import Space
from paceline.traces import LearningRateRange, Objective
from paceline.tuner import load_family, with_known_runs

RESULTS = Path(__file__).parent / "results" / "mnist"
BOUNDS = {"paper": (1e-5, 1e-3), "wide": (1e-5, 1e-1)}
INTERVALS, BUDGET, EACH = 5, 20, 4  # EACH: runs of random search for each task
FRESH = (1000, 1001)  # seeds of runs that judge schedules, which no method sees
MODELS: dict[str, dict[str, Any]] = {
    # section 4.3: the ELBO itself, exponential link, NARX(1), L = 2, N_0 = 5
    "paper": {"link": "exponential", "order": 1, "summed_rate": False, "transform": "identity", "initial": 5},
    "ours": {},  # the defaults: log scale, signed link, NARX(2) and the summed rate, two first runs for each task
}
TOGETHER = 20  # runs at once


def space(bounds: str) -> Space:
    return Space(LearningRateRange(*BOUNDS[bounds]), STEPS, INTERVALS)


def keep(file: str, row: dict[str, Any]) -> None:
    """Add a row, with what it was measured under."""
    with (RESULTS / f"{file}.jsonl").open("a") as out:
        out.write(json.dumps({**row, "machine": _where()}) + "\n")


@cache
def _where() -> str:
    return machine()


def rows(file: str) -> list[dict[str, Any]]:
    return read_rows(RESULTS / f"{file}.jsonl")


def batched(items: Sequence[Any], size: int = TOGETHER) -> Iterator[Sequence[Any]]:
    for i in range(0, len(items), size):
        yield items[i : i + size]


# families


@dataclass(frozen=True, slots=True)
class Asked:
    """A family to be tuned: bounds, model, seed, and the task left out, if any."""

    bounds: str
    model: str
    seed: int
    without: str = ""

    @property
    def folder(self) -> Path:
        left_out = f"-without-{self.without.replace('/', '')}" if self.without else ""
        return RESULTS / "studies" / f"{self.bounds}-{self.model}-{self.seed}{left_out}"

    @property
    def done(self) -> bool:
        return (self.folder / "study.json").exists() and Study.open(self.folder).finished is not None

    def known(self) -> dict[str, list[Trace]]:
        """Where a task is left out, the runs of the others in the family of all five: some of the 20 that it takes."""
        if not self.without:
            return {}
        found = dict[str, list[Trace]]()
        for trace in Study.open(Asked(self.bounds, self.model, self.seed).folder).traces("raw"):
            if trace.task != self.without:
                found.setdefault(trace.task, []).append(trace)
        return found

    def tuner(self) -> Tuner:
        """What `tune_tasks` with these settings drives."""
        known = self.known()
        budget = max(1, BUDGET - sum(map(len, known.values())))
        strategy = MultiTask(FamilySettings(intervals=INTERVALS, budget=budget, **MODELS[self.model]))
        return Tuner(
            lr=BOUNDS[self.bounds],
            steps=STEPS,
            strategy=with_known_runs(strategy, known, self.folder, Objective()),
            study=self.folder,
            seed=self.seed,
            tasks=tuple(task for task in PAIRS if task != self.without),
        )


def tune_families(asked: Sequence[Asked]) -> None:
    """Tune families to their end, their runs side by side."""
    tuners = {each: each.tuner() for each in asked if not each.done}
    while tuners:
        began, waiting = time.perf_counter(), list[tuple[Asked, Any]]()
        for each, tuner in list(tuners.items()):
            proposals = tuner.ask()
            if proposals is None:
                tuner.close()
                del tuners[each]
                continue
            waiting += [(each, p) for p in proposals]
        decided = time.perf_counter()
        for some in batched(waiting):
            plans = [planned(tuners[each].task_of(p), p.schedule, each.seed) for each, p in some]
            at, values = side_by_side(plans)
            for (each, p), seen in zip(some, values, strict=True):
                sound = np.isfinite(seen)
                if sound.all():
                    tuners[each].tell(p, at, seen)
                else:
                    tuners[each].fail(p, "the ELBO is not finite", at[sound], seen[sound])
        spent = f"decided in {decided - began:.0f} s, ran in {time.perf_counter() - decided:.0f} s"
        print(f"{len(waiting)} runs of {len(asked)} families: {spent}", flush=True)


def planned(task: str, schedule: Schedule, seed: int) -> Planned:
    return Planned(images(task), schedule, seed_of(task, seed))


# runs of given schedules


def missing(file: str, wanted: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    done = {tuple(row[key] for key in keys) for row in rows(file)}
    return [row for row in wanted if tuple(row[key] for key in keys) not in done]


def make(file: str, wanted: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
    """Make the runs that are missing: rows with task, bounds, x and run_seed, told apart by `keys`."""
    for some in batched(missing(file, wanted, keys)):
        began = time.perf_counter()
        plans = [planned(row["task"], space(row["bounds"]).schedule(row["x"]), row["run_seed"]) for row in some]
        at, values = side_by_side(plans)
        for row, seen in zip(some, values, strict=True):
            keep(file, {**row, "steps": at.tolist(), "values": [round(v, 6) for v in seen.tolist()]})
        print(f"{len(some)} runs for {file}: {time.perf_counter() - began:.0f} s", flush=True)


def random_runs(bounds: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Random search: four schedules for each task, uniform on the log scale, from the same start as the family's."""
    found = list[dict[str, Any]]()
    for seed in seeds:
        rng = np.random.default_rng([seed, 77])
        for task in PAIRS:
            for number in range(EACH):
                x = rng.uniform(size=INTERVALS).round(4).tolist()
                found.append({"bounds": bounds, "seed": seed, "task": task, "number": number, "x": x, "run_seed": seed})
    return found


def final(row: dict[str, Any]) -> float:
    """The last value of a run; infinite where it failed."""
    value = float(row["values"][-1])
    return value if np.isfinite(value) else np.inf


def found_schedules(bounds: str, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What each method found for each task, with what it observed or expected of it."""
    for seed in seeds:
        for model in MODELS:
            asked = Asked(bounds, model, seed)
            if not asked.done:
                continue
            study = Study.open(asked.folder)
            for task, answer in study.answers.items():
                best = study.best[task]
                common = {"bounds": bounds, "seed": seed, "task": task}
                yield {**common, "method": model, "x": _x(bounds, answer.schedule), "said": answer.median}
                yield {**common, "method": f"{model}, best run", "x": _x(bounds, best.schedule), "said": best.value}
        for task in PAIRS:
            own = [r for r in rows("random") if (r["bounds"], r["seed"], r["task"]) == (bounds, seed, task)]
            if own:
                best = min(own, key=final)
                common = {"bounds": bounds, "seed": seed, "task": task}
                yield {**common, "method": "random search", "x": best["x"], "said": final(best)}


def fixed_schedules(bounds: str) -> Iterator[dict[str, Any]]:
    """For orientation: constant rates, tuned by nobody."""
    low, high = np.log10(BOUNDS[bounds])
    for task in PAIRS:
        for rate in (-3.0,) if bounds == "paper" else (-3.0, -2.0, -1.5, -1.0):
            x = [round((rate - low) / (high - low), 4)] * INTERVALS
            common = {"bounds": bounds, "seed": -1, "task": task, "said": None}
            yield {**common, "method": f"constant {10**rate:.0e}", "x": x}


def fresh_runs(bounds: str, seeds: Sequence[int], *, made: bool = False) -> list[dict[str, Any]]:
    """Runs that judge what was found, on seeds that no method has seen; or what families ran best, if `made`."""
    found = [row for row in found_schedules(bounds, seeds) if made == ("best run" in row["method"])]
    found += [] if made else fixed_schedules(bounds)
    return [{**row, "run_seed": seed} for row in found for seed in FRESH]


FRESH_KEYS = ("bounds", "seed", "task", "method", "run_seed")
RANDOM_KEYS = ("bounds", "seed", "task", "number")


def _x(bounds: str, schedule: Schedule) -> list[float]:
    return space(bounds).x_of(schedule).round(4).tolist()


# forecasts


def trace_of(row: dict[str, Any], model: str) -> Trace:
    transform = MODELS[model].get("transform", "log")
    schedule = space(row["bounds"]).schedule(row["x"])
    return Trace(row["steps"], row["values"], schedule, task=row["task"], objective=Objective(transform=transform))


KINDS = ("random", "random, same start", "found")  # the second: inducing points and data order as in the family's runs


def coverage(bounds: str, seeds: Sequence[int]) -> None:
    """How often the 90 % band of a family's model holds what runs showed that it was not fitted to."""
    done = {(r["bounds"], r["model"], r["seed"], r["kind"]) for r in rows("coverage")}
    for seed in seeds:
        for model in MODELS:
            asked = Asked(bounds, model, seed)
            left = [kind for kind in KINDS if (bounds, model, seed, kind) not in done]
            if not left or not asked.done:
                continue
            family, traces = load_family(asked.folder)
            fitted = family.fit(traces)
            random = [r for r in rows("random") if r["bounds"] == bounds]
            held = {
                "random": [r for r in random if r["seed"] != seed],
                "random, same start": [r for r in random if r["seed"] == seed],
                "found": [r for r in rows("fresh") if (r["bounds"], r["seed"], r["method"]) == (bounds, seed, model)],
            }
            for kind in left:
                for row in held[kind]:
                    said = fitted.forecast(
                        space(bounds).schedule(row["x"]), row["steps"][1:], task=row["task"], draws=400
                    )
                    (low, high), values = said.band(0.9), np.array(row["values"][1:])
                    inside = (low <= values) & (values <= high)
                    errors = np.log(said.median.clip(1e-3) / values)
                    keep(
                        "coverage",
                        {
                            "bounds": bounds,
                            "model": model,
                            "seed": seed,
                            "kind": kind,
                            "task": row["task"],
                            "run": [row["seed"], row.get("number", 0), row["run_seed"]],
                            "inside": float(inside.mean()),
                            "changes": float(inside[np.isin(row["steps"][1:], space(bounds).change_points)].mean()),
                            "end": bool(inside[-1]),
                            "error": float(np.abs(errors).mean()),
                            "error_end": float(errors[-1]),
                            "width_end": float(np.log(high[-1].clip(1e-3) / low[-1].clip(1e-3))),
                        },
                    )
            print(f"coverage of {asked.folder.name}", flush=True)


# a new task

WARM: dict[str, dict[str, Any]] = {"warm start": {}, "universal": {"method": "universal"}}


def families_without(bounds: str, model: str, seeds: Sequence[int]) -> list[Asked]:
    """Each task left out in turn."""
    return [Asked(bounds, model, seed, task) for seed in seeds for task in PAIRS]


def new_tasks(families: Sequence[Asked]) -> None:
    """One run of the task that each family leaves out, by each method, from the same start."""
    done = {(r["bounds"], r["model"], r["seed"], r["task"], r["method"]) for r in rows("new_task")}
    for asked in families:
        for method in (*WARM, "cold"):
            key = (asked.bounds, asked.model, asked.seed, asked.without, method)
            if key in done:
                continue
            began, make_new = time.perf_counter(), factory(asked.without, asked.seed, average=method == "cold")
            if method == "cold":
                found = tune(make_new, steps=STEPS, lr=BOUNDS[asked.bounds], cost=1.0, seed=asked.seed)
            else:
                found = warm_start(asked.folder, make_new, seed=asked.seed, **WARM[method])
            fork = found.history.fork(found.fork)
            row = dict(zip(("bounds", "model", "seed", "task", "method"), key, strict=True))
            row |= {"value": float(fork.raw.last_value), "returned": float(found.value)}
            row |= {"steps": fork.raw.path()[0].tolist(), "values": fork.raw.path()[1].round(6).tolist()}
            row |= {"schedule": found.schedule.to_json(), "seconds": round(time.perf_counter() - began, 1)}
            keep("new_task", row)
            print(f"{', '.join(map(str, key))}: {row['seconds']} s", flush=True)
