"""One task of a family is left out and trained once, with what the others have shown: how far from its optimum it ends.

Two families (`_new_tasks`): eight noisy quadratics, 1,000 steps and 56 known runs, and five pairs of digits, 300 steps
and 28 known runs. The left-out task is trained by each of:

- warm start: `warm_start` with its defaults. It begins with the range test of a cold start, 5 % of the steps (40 at
  least) on top of the run, and becomes a cold start if the task is unlike its family;
- without a cold start: the same without the range test, so the family is followed in any case;
- universal: the schedule that is best over where the task may lie, by its 0.3-quantile; "universal, paper": by its mean
  over the convex hull of the known tasks;
- dynamic, point: the paper's recipe, which plans anew at every change point with the task at its most probable place;
- two forks, against cold starts of cost 2 and 2.3;
- cold: `horizon` at cost 1, which knows nothing of the family.

Then the left-out task is made unlike its family: rates count for ten times more or less, or three times the loss plus
one is observed. Then a warm start should end where a cold one does.

Judged by log(expected final loss of the schedule that was run / that of the best schedule), so that the luck of a run
is not in it; what the raw weights of the run ended at is beside it. Changed tasks are judged by what they ended at.
Bars: below the cold start by two standard errors; within 5 % of it on changed tasks. Seeds are not those that settings
were chosen on (300 to 303). Rows are kept in results/new_task.jsonl, so an interrupted run goes on.
"""

import argparse
import json
import multiprocessing
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks._new_tasks import CHANGES, FAMILIES, factory, known_runs
from benchmarks._report import machine, print_results, read_rows, result, table, with_error
from paceline import tune
from paceline.settings import NewTaskSettings
from paceline.strategy import NewTask

ROWS = Path(__file__).parent / "results" / "new_task.jsonl"
WARM: dict[str, dict[str, Any]] = {
    "warm start": {},
    "without a cold start": {"cold_start": False},
    "universal": {"method": "universal", "cold_start": False},
    "universal, paper": {"method": "universal", "prior": "hull", "statistic": "mean", "cold_start": False},
    "dynamic, point": {"location": "point", "cold_start": False},
    "warm start, two forks": {"forks": 2},
}
COLD = {"cold": 1.0, "cold, cost 2": 2.0, "cold, cost 2.3": 2.3}
AGAINST = {
    "warm start": ("cold", "universal", "without a cold start", "dynamic, point"),
    "warm start, two forks": ("cold, cost 2", "cold, cost 2.3"),
}
ON_CHANGED = ("cold", "warm start", "without a cold start")
Key = tuple[str, str, str, int, str]  # family, task, change, seed, method
REJECTED = {"other loss", "unsuitable rate", "rate too low", "no progress", "first interval failed"}


def work(family: str, task: str, seed: int, keys: Sequence[Key], rows_path: Path) -> str:
    """Train the task that was left out by each method that is missing, and keep each row at once."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem, known = FAMILIES[family](), None
    for *_, change, _, method in keys:
        settings: dict[str, Any] = {"cost": COLD.get(method)}
        if method in WARM:
            if known is None:
                plan, traces = known_runs(problem, task, seed)
                known = plan, tuple(traces), plan.fit(traces)
            settings = {"strategy": NewTask(*known, settings=NewTaskSettings(**WARM[method]))}
        make = factory(problem, task, seed, change)
        with TemporaryDirectory() as folder:
            tuned = tune(
                make,
                steps=problem.space.steps,
                lr=problem.space.lr_range,
                seed=seed,
                study=folder,
                quiet=True,
                **settings,
            )
        assert tuned.schedule is not None
        assert tuned.fork is not None
        reasons = [reason.kind for decision in tuned.study.decisions for reason in decision.reasons]
        ended = tuned.history.fork(tuned.fork).final_value
        row = {
            "family": family,
            "task": task,
            "change": change,
            "seed": seed,
            "method": method,
            "expected": None if change else problem.judge(task, tuned.schedule),
            "ended": float(np.log((ended - 1) / 3 if change == CHANGES[2] else ended)),
            "steps": sum(interval.stop - interval.start for interval in tuned.study.intervals),
            "became": next((kind for kind in reasons if kind in REJECTED), ""),
            "decide": round(tuned.seconds["decide"], 2),
            "x": problem.space.lr_range.to_unit(tuned.schedule.multipliers).round(4).tolist(),
        }
        with rows_path.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return f"{family}, {task}, seed {seed}"


def wanted(family: str, task: str, seed: int) -> list[Key]:
    """All rows of a task that is left out."""
    plain = [(family, task, "", seed, method) for method in (*COLD, *WARM)]
    return plain + [(family, task, change, seed, method) for change in CHANGES for method in ON_CHANGED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--methods", nargs="+", choices=[*COLD, *WARM], default=[*COLD, *WARM])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--show", action="store_true", help="show the finished rows, without running others")
    options = parser.parse_args()
    done = {(r["family"], r["task"], r["change"], r["seed"], r["method"]) for r in read_rows(options.rows)}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        started = list[Any]()
        for seed in [] if options.show else options.seeds:
            for family in options.families:
                for task in FAMILIES[family]().tasks:
                    keys = [k for k in wanted(family, task, seed) if k not in done and k[-1] in options.methods]
                    if keys:
                        started.append(pool.submit(work, family, task, seed, keys, options.rows))
        for job in as_completed(started):
            print(job.result(), flush=True)
    print(machine())
    for family in FAMILIES:
        show(family, [row for row in read_rows(options.rows) if row["family"] == family])
    print_results()


def show(family: str, rows: list[dict[str, Any]]) -> None:
    """Means over tasks and seeds, differences paired by task and seed, and changed tasks."""
    by = {(r["task"], r["change"], r["seed"], r["method"]): r for r in rows}
    lines = list[list[object]]()
    for method in (*COLD, *WARM):
        own = [r for (_, change, _, name), r in by.items() if name == method and not change]
        if own:
            became = sum(bool(r["became"]) for r in own)
            steps = np.mean([r["steps"] for r in own]) / FAMILIES[family]().space.steps
            lines.append([method, with_error([r["expected"] for r in own]), f"{steps:.2f}", became])
            result(f"new_task_{family}_{'_'.join(method.replace(',', '').split())}", mean_ratio(own))
    print(table([f"{family}: log ratio to the optimum (runs)", "expected", "runs of steps", "became cold"], lines))
    gaps = [
        [f"{ours} less {other}", *(differences(by, ours, other, "", what) for what in ("expected", "ended"))]
        for ours, others in AGAINST.items()
        for other in others
    ]
    print(table([f"{family}, paired by task and seed", "expected", "as it ended"], gaps))
    changed = [
        [
            change,
            *(differences(by, ours, "cold", change, "ended") for ours in ON_CHANGED[1:]),
            became_cold(rows, change),
        ]
        for change in CHANGES
    ]
    print(table([f"{family}, made unlike its family: ended less cold", *ON_CHANGED[1:], "became cold"], changed))


def mean_ratio(rows: Sequence[dict[str, Any]]) -> float:
    """Mean log ratio to the optimum."""
    return float(np.mean([r["expected"] for r in rows]))


def differences(by: dict[Any, dict[str, Any]], ours: str, other: str, change: str, what: str) -> str:
    """The mean paired difference and its standard error."""
    pairs = [
        (row[what], by[key][what])
        for (task, made, seed, method), row in by.items()
        if (made, method) == (change, ours) and (key := (task, change, seed, other)) in by
    ]
    return with_error([a - b for a, b in pairs])


def became_cold(rows: Sequence[dict[str, Any]], change: str) -> str:
    """How many warm starts noticed."""
    own = [row for row in rows if (row["change"], row["method"]) == (change, "warm start")]
    return f"{sum(bool(row['became']) for row in own)} of {len(own)}"


if __name__ == "__main__":
    main()
