"""Does a higher cost ever end worse? What `tune` returns at costs from 1 to 5, on the same seeds.

Six noisy quadratics with other curvatures and noise than those that settings were chosen on, digits and characters.
Within a seed all costs have the same weights, data and bounds. Bar: on no problem, and not over all, is a cost worse
than a smaller one by more than two standard errors.

`python -m benchmarks.costs` resumes from results/costs.jsonl; an hour on two cores in all.
"""

import warnings
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks._problems import PROBLEMS, Problem
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete
from paceline import tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Event, Report

COSTS = (1, 1.25, 1.5, 1.75, 2, 2.3, 3.2, 5)
# powers of the curvatures, and noise
SPECTRA = ((0.4, 0.5), (0.6, 0.05), (0.8, 2.0), (1.0, 0.2), (1.2, 1.0), (1.5, 0.05))


def spectrum(power: float, noise: float) -> Problem:
    """A noisy quadratic; the middle of its bounds is far below the highest stable rate, as users would guess."""
    problem = Quadratic(noise, 400, power)
    name = f"power {power:g}, noise {noise:g}"
    return Problem(name, lambda seed: QuadraticTraining(problem, seed), 2000, 0.1, 16, network=False)


ALL = {
    **{problem.name: problem for problem in (spectrum(*numbers) for numbers in SPECTRA)},
    "digits": PROBLEMS["digits"],
    "characters": PROBLEMS["characters"],
}


def run(key: Key) -> dict[str, Any]:
    """One study; what it returned, and the steps that all forks took."""
    name, method, seed = key
    problem, steps = ALL[name], list[int]()

    def count(event: Event) -> None:
        if isinstance(event, Report):
            steps.append(event.stop - event.start)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = tune(
            lambda: problem.make(seed),
            steps=problem.steps,
            lr=problem.bounds(seed),
            cost=float(method),
            seed=seed,
            on_event=count,
            quiet=True,
        )
    return {"value": found.value, "cost": sum(steps) / problem.steps}


def logs(rows: Rows, name: str, cost: float) -> np.ndarray:
    """Log of what was returned on each seed."""
    return np.log([rows[name, f"{cost:g}", seed]["value"] for seed in range(ALL[name].seeds)])


def mean_and_error(differences: np.ndarray) -> tuple[float, float]:
    """Mean of paired differences, and its standard error."""
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


def print_tables(rows: Rows) -> None:
    """Each cost against a single run and against the cost before it; then the pairs that break the bar."""
    for title, reference in (("cost 1", lambda cost: COSTS[0]), ("the cost before", lambda cost: _before(cost))):
        lines = []
        for cost in COSTS[1:]:
            gains = {name: logs(rows, name, cost) - logs(rows, name, reference(cost)) for name in ALL}
            cells = [f"{100 * m:+.1f} +- {100 * e:.1f}" for m, e in map(mean_and_error, gains.values())]
            mean, error = pooled(list(gains.values()))
            lines.append([f"{cost:g}", *cells, f"{100 * mean:+.1f} +- {100 * error:.1f}"])
        print(f"\nlog of the final loss over that at {title}, in %, +- standard error; negative is better\n")
        print(table(["cost", *ALL, "mean"], lines))
    print_worst(rows)


def print_worst(rows: Rows) -> None:
    """All pairs in which the higher cost is worse by more than two standard errors."""
    lines, worst, overall = [], -np.inf, -np.inf
    for low, high in combinations(COSTS, 2):
        gains = {name: logs(rows, name, high) - logs(rows, name, low) for name in ALL}
        for name, gain in gains.items():
            mean, error = mean_and_error(gain)
            worst = max(worst, mean / error if error else 0.0)  # costs 1 and 1.25 are the same run
            if mean > 2 * error:
                lines.append([f"{high:g}", f"{low:g}", name, f"{100 * mean:+.1f} +- {100 * error:.1f}"])
        mean, error = pooled(list(gains.values()))
        overall = max(overall, mean / error if error else 0.0)
    pairs = len(ALL) * len(list(combinations(COSTS, 2)))
    print(f"\n{len(lines)} of {pairs} pairs in which the higher cost is worse by more than two standard errors\n")
    if lines:
        print(table(["cost", "worse than", "problem", "difference, %"], lines))
    result("costs_pairs_worse", float(len(lines)))
    result("costs_largest_z_of_a_problem", float(worst))
    result("costs_largest_z_over_all", float(overall))


def pooled(gains: list[np.ndarray]) -> tuple[float, float]:
    """Mean over the problems, each with the same weight, and its standard error."""
    means, errors = zip(*map(mean_and_error, gains), strict=True)
    return float(np.mean(means)), float(np.linalg.norm(errors) / len(errors))


def _before(cost: float) -> float:
    return COSTS[COSTS.index(cost) - 1]


if __name__ == "__main__":
    options = arguments(__doc__)
    keys = [
        (p.name, f"{cost:g}", seed)
        for p in reversed(ALL.values())
        for cost in reversed(COSTS)
        for seed in range(p.seeds)
        if options.problem in p.name and options.only in f"{cost:g}"
    ]
    kept = complete(RESULTS / "costs.jsonl", keys, run, jobs=0 if options.report else options.jobs, limit=options.limit)
    print(machine())
    print_tables(kept)
    print_results()
