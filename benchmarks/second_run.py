"""Is the second run of a model better for what the first study saw? Plan it with the law, train it once.

The first study is `horizon` at its default cost (2.3 runs). From the raw traces of all of its forks the law plans one
run of the same length, in each of its families; it is trained once, from the same weights, at cost 1. Beside it: the
result of the first study (its best fork), the schedule that this fork had, run again alone (what `export` gives), and
the best fixed schedule tuned in hindsight on other seeds. All over the latter; a forecast's 90 % band is checked too.

`python -m benchmarks.second_run` resumes from results/second_run.jsonl; about 15 minutes on two cores.
"""

from typing import Any

import numpy as np

from benchmarks._hindsight import hindsight, train
from benchmarks._problems import PROBLEMS, Problem
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete, geometric_mean
from benchmarks.horizon import tuned
from paceline import Schedule
from paceline.model import LawModel
from paceline.strategy import Dynamic, History

FAMILIES = ("shape", "multipliers", "free")
KINDS = ("first", "again", *FAMILIES)
SEEDS = {"quadratic 1": 8, "quadratic 0.1": 8, "edge": 8, "digits": 6, "characters": 3}


def run(key: Key) -> dict[str, Any]:
    """A first study, the runs planned from it, and hindsight's."""
    name, _, seed = key
    problem = PROBLEMS[name]
    tuned_study = tuned(problem, Dynamic.horizon(), seed)
    with np.errstate(all="ignore"):
        row = {
            "first": tuned_study.history.fork(tuned_study.fork).last_values["raw"],
            "again": once(problem, tuned_study.schedule, seed),
        }
        row["hindsight"] = train(name, *hindsight(name), seed)["raw"]
        for family, (schedule, low, high) in planned(tuned_study.history).items():
            row[family] = once(problem, schedule, seed)
            row[f"{family} in band"] = bool(low <= row[family] <= high)
    return row


def planned(history: History) -> dict[str, tuple[Schedule, float, float]]:
    """A plan of each family from what all forks of a study observed, and its 90 % band at the end."""
    goal = history.goal
    model = LawModel.fit([fork.raw for fork in history.forks if fork.raw is not None])
    bounds = (goal.lr_range.low, goal.lr_range.high)
    plans = {family: model.plan(steps=goal.steps, lr=bounds, family=family) for family in FAMILIES}
    return {name: (p.schedule, *(float(end[-1]) for end in p.forecast.band(0.9))) for name, p in plans.items()}


def once(problem: Problem, schedule: Schedule, seed: int) -> float:
    """The final raw value of one run."""
    last = list(problem.make(seed).advance(schedule, problem.steps))[-1][1]
    return float(last["raw"])  # pyright: ignore


def print_table(rows: Rows) -> None:
    """Every kind over hindsight, and in pairs over the first result and the schedule run again."""
    means: dict[str, list[float]] = {kind: [] for kind in KINDS}
    lines = []
    for name, seeds in SEEDS.items():
        these = [rows[name, "second", seed] for seed in range(seeds)]
        cells = []
        for kind in KINDS:
            values, base = (np.array([row[of] for row in these]) for of in (kind, "hindsight"))
            ratio = values.mean() / base.mean()
            error = (values - ratio * base).std(ddof=1) / np.sqrt(seeds) / base.mean()
            means[kind].append(float(ratio))
            cells.append(f"{ratio:.3f}+-{error:.3f}" if ratio < 1000 else f"{ratio:.0e}")
        inside = np.mean([row[f"{family} in band"] for row in these for family in FAMILIES])
        lines.append([name if PROBLEMS[name].counted else f"({name})", *cells, f"{inside:.2f}"])
    counted = [i for i, name in enumerate(SEEDS) if PROBLEMS[name].counted]
    networks = [i for i, name in enumerate(SEEDS) if PROBLEMS[name].network]
    for label, which in (("all", counted), ("networks", networks)):
        overall = {kind: geometric_mean([means[kind][i] for i in which]) for kind in KINDS}
        lines.append([label, *(f"{value:.3f}" for value in overall.values()), ""])
        for kind, value in overall.items():
            result(f"second_run_{kind}_{label}", value)
    print(table(["over hindsight", *KINDS, "90 % band holds"], lines))
    print()
    lines = []
    for other in ("first", "again"):
        for name, seeds in SEEDS.items():
            these = [rows[name, "second", seed] for seed in range(seeds)]
            gains = [np.log([row[family] / row[other] for row in these]) for family in FAMILIES]
            errors = [100 * g.std(ddof=1) / np.sqrt(len(g)) for g in gains]
            cells = [f"{100 * g.mean():+.1f} +- {e:.1f}" for g, e in zip(gains, errors, strict=True)]
            lines.append([other, name, *cells])
    print(table(["over", "problem, %", *FAMILIES], lines))


def main() -> None:
    """Complete the table and print it."""
    options = arguments(__doc__)
    problems = [name for name in reversed(SEEDS) if options.problem in ("", name)]
    keys: list[Key] = [(name, "second", seed) for name in problems for seed in range(SEEDS[name])]
    path = RESULTS / "second_run.jsonl"
    rows = complete(path, keys, run, jobs=0 if options.report else options.jobs, limit=options.limit)
    if any(key not in rows for key in keys) or options.problem:
        print(f"{sum(key in rows for key in keys)} of {len(keys)} runs are done: run it again to go on")
        return
    print(machine())
    print_table(rows)
    print_results()


if __name__ == "__main__":
    main()
