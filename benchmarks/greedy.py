"""Claim: Algorithm 1 ends lower if the five rates of a decision differ.

`greedy` chooses the rates of a decision one after the other, each as if those before it had gone as expected, and at
least 0.2 decades apart. "greedy 0.1.0" is what it was: the same model, all rates chosen at once. `paper` is the printed
algorithm, without our additions to its model. Bars: at least 4 of 5 rates of a decision differ, and `greedy` ends lower
than "greedy 0.1.0" by two standard errors over all problems. Both are met, though not on each problem: it ends lower on
quadratics and higher on digits. Part of the runs of `paper` are missing, see results/greedy.txt. The paper also says
that one run, without parallel computation, ends lower than any constant rate: here the best of five in hindsight.

Runs are short and have ten intervals, not the paper's twenty. Seeds are not those that settings were chosen on.

`python -m benchmarks.greedy` resumes from results/greedy.jsonl; about ten minutes on an idle core.
"""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._problems import PROBLEMS
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete
from benchmarks.horizon import tuned
from paceline.errors import TrainingError
from paceline.shapes import Constant
from paceline.strategy import Dynamic, FixedSchedules, Fork, Strategy

FORKS, INTERVALS = 5, 10
EARLY = 8  # decisions that are counted as early
BEFORE = "greedy 0.1.0"
METHODS: dict[str, Callable[[], Strategy]] = {
    BEFORE: lambda: Dynamic.greedy(
        intervals=INTERVALS, min_separation=0, in_sequence=False, alphas=Dynamic.paper().alphas
    ),
    "greedy": lambda: Dynamic.greedy(intervals=INTERVALS),
    "paper": lambda: Dynamic.paper(intervals=INTERVALS),
    "paper, Q = 1": lambda: Dynamic.paper(forks=1, intervals=INTERVALS),
    "paper, Q = 1, alpha 0.5": lambda: Dynamic.paper(forks=1, intervals=INTERVALS, alphas=(0.5,)),
    "constant": lambda: FixedSchedules((Constant(),), FORKS),
}
PAIRS = (("greedy", BEFORE), ("paper", BEFORE), ("greedy", "paper"))
PAIRS_OF_ONE = (("paper, Q = 1", "constant"), ("paper, Q = 1, alpha 0.5", "constant"), ("paper", "constant"))
STEPS = {"quadratic 1": 1000, "quadratic 0.1": 1000, "digits": 300, "characters": 200}
SEEDS = {
    "quadratic 1": range(200, 212),
    "quadratic 0.1": range(200, 212),
    "digits": range(200, 206),
    "characters": range(200, 203),
}


def run(key: Key) -> dict[str, Any]:
    """One study: its final value, and how many rates of each decision differ."""
    name, method, seed = key
    problem = PROBLEMS[name]._replace(steps=STEPS[name])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tuned(problem, METHODS[method](), seed)
    except TrainingError as error:
        return {"raw": None, "failure": str(error)}
    best = found.history.fork(found.fork)
    return {
        "raw": best.last_values["raw"],
        "distinct": distinct_rates(found.history.forks),
        "schedule": [float(f"{rate:.4g}") for rate in best.schedule.multipliers],
    }


def distinct_rates(forks: Sequence[Fork]) -> list[int]:
    """How many rates of each decision differ, in the order of decisions; only decisions that cloned five forks."""
    rates = defaultdict[int, list[float]](list)
    for fork in forks:
        if fork.parent is not None:
            step = fork.start
            rates[step].append(round(float(np.log10(fork.schedule(np.array([step]))[0])), 6))
    return [len(set(found)) for _, found in sorted(rates.items()) if len(found) == FORKS]


def log_ratios(rows: Rows, problem: str, method: str, other: str) -> np.ndarray:
    """Log of the final loss of one method over that of another, on the seeds on which both have one."""
    pairs = [(rows.get((problem, method, seed)), rows.get((problem, other, seed))) for seed in SEEDS[problem]]
    values = [(a["raw"], b["raw"]) for a, b in pairs if a is not None and b is not None]
    return np.array([np.log(a / b) for a, b in values if a is not None and b is not None])


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def print_differences(rows: Rows, pairs: Sequence[tuple[str, str]]) -> None:
    """Paired differences of the log of the final loss, for each problem and for the mean of the problems."""
    lines = []
    for method, other in pairs:
        cells, means, errors = [], [], []
        for problem in SEEDS:
            found = log_ratios(rows, problem, method, other)
            if len(found) < 2:
                cells.append(" ".join(f"{value:+.3f} (1)" for value in found) or "no pair")
                continue
            mean, error = mean_and_error(found)
            cells.append(f"{mean:+.3f} +- {error:.3f} ({len(found)})")
            means.append(mean)
            errors.append(error)
        overall = ""
        if means:
            mean, error = float(np.mean(means)), float(np.linalg.norm(errors)) / len(errors)
            overall = f"{mean:+.3f} +- {error:.3f} ({len(means)})"
            key = f"{method} over {other}".replace(" ", "_").replace(",", "")
            result(key, mean)
            result(f"{key}_error", error)
            result(f"{key}_problems", len(means))
        lines.append([f"{method} over {other}", *cells, overall])
    print(table(["log of the final loss", *SEEDS, "mean (problems with an error)"], lines))


def print_distinct(rows: Rows) -> None:
    """How many of the five rates of a decision differ: early and over the whole run."""
    lines = []
    for method in (BEFORE, "greedy", "paper"):
        cells = list[str]()
        for problem in SEEDS:
            found = [row["distinct"] for (name, by, _), row in rows.items() if (name, by) == (problem, method)]
            found = [counts for counts in found if counts]
            if not found:
                cells.append("not run")
                continue
            early = [np.mean(counts[:EARLY]) for counts in found]
            cells.append(f"{np.mean(early):.2f} / {np.mean([np.mean(counts) for counts in found]):.2f}")
            result(f"distinct_{method}_{problem}".replace(" ", "_"), float(np.mean(early)))
        lines.append([method, *cells])
    print(table([f"decisions 1 to {EARLY} / all", *SEEDS], lines))


def main() -> None:
    """Complete the rows and print the tables."""
    options = arguments(__doc__, jobs=1)
    methods = [name for name in METHODS if options.only in name]
    keys: list[Key] = [
        (problem, method, seeds[i])
        for i in range(max(map(len, SEEDS.values())))
        for problem, seeds in SEEDS.items()
        if i < len(seeds) and options.problem in ("", problem)
        for method in methods
    ]  # all methods on a seed before the next seed: what there is can be compared
    jobs = 0 if options.report else options.jobs
    rows = complete(RESULTS / "greedy.jsonl", keys, run, jobs=jobs, limit=options.limit)
    missing = sum(key not in rows for key in keys)
    if missing and not options.report:
        print(f"{len(keys) - missing} of {len(keys)} runs are done: run it again to go on")
        return
    print(machine())
    failed = Counter(f"{method} on {problem}" for (problem, method, _), row in rows.items() if row["raw"] is None)
    diverged = ", ".join(f"{name}: {count}" for name, count in sorted(failed.items())) or "none"
    print(f"{len(keys) - missing} of {len(keys)} runs; diverged for good, and left out of pairs: {diverged}")
    print("\nRates of a decision that differ, of 5\n")
    print_distinct(rows)
    print("\nPaired differences, +- standard error (seeds); below 0 is better\n")
    print_differences(rows, PAIRS)
    print("\nWithout parallel computation, against the best of five constant rates in hindsight\n")
    print_differences(rows, PAIRS_OF_ONE)
    print_results()


if __name__ == "__main__":
    main()
