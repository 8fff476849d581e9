"""What keeping the best moment and ending early are worth on networks that overfit.

Three networks whose held-out loss turns up: a character model on a short text, one that is fine-tuned, and digits with
wrong labels. Runs are judged on one half of the held-out data; the other half, which chooses nothing, shows what the
weights are worth. Bar: ending early changes what is returned by less than 0.002 in the mean, and saves steps.

`python -m benchmarks.turning` resumes from results/turning.jsonl; a quarter of an hour on two cores.
"""

import warnings
from typing import Any

import numpy as np

from benchmarks._overfitting import PROBLEMS
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete
from paceline import tune
from paceline.study import Event, Report

COSTS = (1, 2.3)
SEEDS = 6
EARLY, TO_THE_END = "early ends", "to the end"
BOUNDS = 100.0  # factor around the middle


def run(key: Key) -> dict[str, Any]:
    """One study: its best moment, its end, and what both are worth on data that chose nothing."""
    name, method, seed = key
    problem, (cost, ending) = PROBLEMS[name], method.split(", ")
    steps, shift = list[int](), 10 ** np.random.default_rng([seed, 77]).uniform(-0.25, 0.25)

    def count(event: Event) -> None:
        if isinstance(event, Report):
            steps.append(event.stop - event.start)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune(
            lambda: problem.make(seed),
            steps=problem.steps,
            lr=(problem.middle * shift / BOUNDS, problem.middle * shift * BOUNDS),
            cost=float(cost),
            seed=seed,
            early_stop=ending == EARLY,
            on_event=count,
            quiet=True,
        )
    model = problem.make(seed).model
    model.load_state_dict(found.weights())
    return {
        "value": found.value,
        "test": problem.test(model.eval()),
        "step": found.step,
        "last": found.last,
        "cost": sum(steps) / problem.steps,
    }


def print_table(rows: Rows) -> None:
    """Per problem and cost: the best moment, the end, and what ending early saved and changed."""
    lines, changes, saved = [], [], []
    for name, problem in PROBLEMS.items():
        for cost in COSTS:
            early, full = (
                [rows[name, f"{cost:g}, {ending}", seed] for seed in range(SEEDS)] for ending in (EARLY, TO_THE_END)
            )
            change = np.array([a["value"] - b["value"] for a, b in zip(early, full, strict=True)])
            on_test = np.array([a["test"] - b["test"] for a, b in zip(early, full, strict=True)])
            share = np.array([1 - a["cost"] / b["cost"] for a, b in zip(early, full, strict=True)])
            best, last = (np.mean([row[column] for row in full]) for column in ("value", "last"))
            step = np.mean([row["step"] for row in full]) / problem.steps
            lines.append(
                [
                    name,
                    f"{cost:g}",
                    f"{best:.4f}",
                    f"{100 * step:.0f} %",
                    f"{last:.4f}",
                    f"{100 * share.mean():.0f} %",
                    *(f"{values.mean():+.4f} +- {values.std(ddof=1) / SEEDS**0.5:.4f}" for values in (change, on_test)),
                ]
            )
            changes.append(change.mean())
            saved.append(share.mean())
    columns = ["problem", "cost", "best moment", "at", "end", "saved by ending early", "change", "change on other data"]
    print(table(columns, lines))
    result("turning_largest_change", float(np.max(changes)))
    result("turning_mean_share_saved", float(np.mean(saved)))


if __name__ == "__main__":
    options = arguments(__doc__)
    keys = [
        (name, f"{cost:g}, {ending}", seed)
        for seed in range(SEEDS)
        for name in PROBLEMS
        for cost in reversed(COSTS)
        for ending in (EARLY, TO_THE_END)
        if options.problem in name and options.only in f"{cost:g}, {ending}"
    ]
    path = RESULTS / "turning.jsonl"
    kept = complete(path, keys, run, jobs=0 if options.report else options.jobs, limit=options.limit)
    print(machine(), "\n")
    print_table(kept)
    print_results()
