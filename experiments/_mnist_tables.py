"""Tables of `experiments.mnist`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._report import result, table
from experiments._mnist_forecasts import KINDS
from experiments._mnist_results import BOUNDS, MODELS, final_value, rows
from experiments._svgp import PAIRS

REFERENCE = "random search"


def show() -> None:
    """Print all tables, and the numbers that the claims are compared with."""
    for bounds in BOUNDS:
        print_fresh_runs(bounds, [row for row in rows("fresh") if row["bounds"] == bounds])
    print_coverage(rows("coverage"))
    for bounds in BOUNDS:
        print_new_tasks(bounds, [row for row in rows("new_task") if row["bounds"] == bounds])


def _label(*words: str) -> str:
    return "_".join(words).replace(",", "").replace(" ", "_").replace("-", "m")


def with_error(values: Sequence[float]) -> str:
    """Mean, standard error if there are several values, and how many there are."""
    error = f" +- {np.std(values, ddof=1) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{error} ({len(values)})"


def print_fresh_runs(bounds: str, fresh: Sequence[dict[str, Any]]) -> None:
    """The values of each method's schedules on fresh seeds beside those it expected; then against random search."""
    if not fresh:
        return
    ends = dict[tuple[str, str, int], list[float]]()
    for row in fresh:
        ends.setdefault((row["method"], row["task"], row["seed"]), []).append(final_value(row))
    means = {key: float(np.mean(values)) for key, values in ends.items()}
    expected = {(row["method"], row["task"], row["seed"]): row["expected"] for row in fresh}
    methods = list(dict.fromkeys(row["method"] for row in fresh))
    lines, paired = list[list[object]](), list[list[object]]()
    for method in methods:
        own = {key: value for key, value in means.items() if key[0] == method}
        seeds = sorted({seed for _, _, seed in own})
        by_seed = [float(np.mean([own[method, task, seed] for task in PAIRS])) for seed in seeds]
        by_task = [float(np.mean([own[method, task, seed] for seed in seeds])) for task in PAIRS]
        values = [expected[key] for key in own]
        mean_expected = "" if values[0] is None else f"{np.mean(values):.4f}"
        lines.append([method, mean_expected, with_error(by_seed), *(f"{value:.4f}" for value in by_task)])
        result(f"mnist_{bounds}_{_label(method)}", float(np.mean(by_seed)))
        compared = [key for key in own if (REFERENCE, *key[1:]) in means]
        if method == REFERENCE or not compared:
            continue
        logs = {key: np.log(own[key] / means[(REFERENCE, *key[1:])]) for key in compared}
        seed_gaps = [float(np.mean([gap for key, gap in logs.items() if key[2] == seed])) for seed in seeds]
        better = sum(gap < 0 for gap in logs.values())
        gaps = [float(np.mean([gap for key, gap in logs.items() if key[1] == task])) for task in PAIRS]
        paired.append([method, with_error(seed_gaps), f"{better} of {len(logs)}", *(f"{gap:+.3f}" for gap in gaps)])
        result(f"mnist_{bounds}_{_label(method, 'against random')}", float(np.mean(seed_gaps)))
    runs = len({row["run_seed"] for row in fresh})
    print(f"\n{bounds} bounds {BOUNDS[bounds]}: -ELBO/N at the end, nats per image; {runs} fresh runs of each schedule")
    print(table(["method", "said or seen", "fresh runs (seeds)", *PAIRS], lines))
    print(table([f"log ratio to {REFERENCE}", "mean (seeds)", "better", *PAIRS], paired))


def print_coverage(coverage: Sequence[dict[str, Any]]) -> None:
    """Share of observations, and of final ones, inside the 90 % band."""
    lines = list[list[object]]()
    for bounds in BOUNDS:
        for model in MODELS:
            for kind in KINDS:
                own = [row for row in coverage if (row["bounds"], row["model"], row["kind"]) == (bounds, model, kind)]
                if not own:
                    continue
                inside, end = (float(np.mean([row[what] for row in own])) for what in ("inside", "end"))
                changes = float(np.mean([row["changes"] for row in own]))
                error, last = (float(np.mean(np.abs([row[what] for row in own]))) for what in ("error", "error_end"))
                bias, width = (float(np.mean([row[what] for row in own])) for what in ("error_end", "width_end"))
                runs = len({str(row["run"]) + row["task"] for row in own})
                count = f"{len(own)} of {runs}"
                share = [*(f"{100 * each:.0f} %" for each in (inside, changes, end)), count]
                logs = [f"{error:.3f}", f"{last:.3f}", f"{bias:+.3f}", f"{width:.2f}"]
                lines.append([bounds, model, kind, *share, *logs])
                result(f"mnist_coverage_{bounds}_{model}_{_label(kind)}", inside)
                result(f"mnist_coverage_end_{bounds}_{model}_{_label(kind)}", end)
    if lines:
        logs = ["|log error|", "at the end", "median/value at the end, log", "log width at the end"]
        print("\n90 % band of forecasts of whole runs, from their first step, by models that were not fitted to them")
        print(
            table(
                ["bounds", "model", "schedules", "all along", "at changes", "at the end", "forecasts of runs", *logs],
                lines,
            )
        )


def print_new_tasks(bounds: str, runs: Sequence[dict[str, Any]]) -> None:
    """Final values of the one run of a task that was left out, against random schedules from the same start."""
    if not runs:
        return
    ends = {(row["method"], row["task"], row["seed"]): row["value"] for row in runs}
    ends |= {("cold, weights returned", r["task"], r["seed"]): r["returned"] for r in runs if r["method"] == "cold"}
    for task, seed in sorted({(row["task"], row["seed"]) for row in runs}):
        random = [final_value(r) for r in rows("random") if (r["bounds"], r["task"], r["seed"]) == (bounds, task, seed)]
        if random:
            ends["a random schedule", task, seed] = float(np.mean(random))
            ends[f"best of {len(random)} random", task, seed] = min(random)
    lines = list[list[object]]()
    for method in dict.fromkeys(["warm start", *(key[0] for key in ends)]):
        own = {key[1:]: value for key, value in ends.items() if key[0] == method}
        logs = [float(np.log(value / ends[("warm start", *key)])) for key, value in own.items()]
        by_task = [np.mean([value for key, value in own.items() if key[0] == task]) for task in PAIRS]
        mean = float(np.mean(list(own.values())))
        gap = with_error(logs) if method != "warm start" else ""
        lines.append([method, f"{mean:.4f}", gap, *(f"{value:.4f}" for value in by_task)])
        result(f"mnist_new_{bounds}_{_label(method)}", mean)
    seeds = len({row["seed"] for row in runs})
    print(f"\na task left out, {bounds} bounds: -ELBO/N at the end of one run; {seeds} seed(s)")
    print(table(["method", "mean", "log ratio to warm start (runs)", *PAIRS], lines))
