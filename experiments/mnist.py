"""MNIST, five binary tasks, sparse GP classification by Adam (paper, section 4.3).

Claims. With 20 runs in all, schedules of five rates are found for the five tasks together. On seeds that no method has
seen they end at least as low as the best of random search with the same 20 runs. This is in the mean over tasks and
three seeds, in the paper's bounds [1e-5, 1e-3] and in [1e-5, 1e-1], where the best rates are not at the edge. The 90 %
band of forecasts is compared with runs that the model was not fitted to. A task that is left out and begun with
`warm_start` is compared with a cold start that costs the same, with the universal schedule and with random ones.

The value is -ELBO/N, in nats per image (`_svgp`). "paper" has the paper's trace model (on the ELBO itself, exponential
link, NARX(1), N_0 = 5), "ours" the defaults. Results: docs/experiments.md.
"""

import argparse
import json
import warnings
from typing import Any

import torch

from benchmarks._report import machine, print_results
from experiments._mnist_families import FamilyStudy, families_without, tune_families
from experiments._mnist_forecasts import measure_coverage
from experiments._mnist_new_tasks import WARM_STARTS, run_new_tasks
from experiments._mnist_results import BOUNDS, BUDGET, FOLDER, INTERVALS, MODELS
from experiments._mnist_runs import FRESH, FRESH_KEYS, RANDOM_KEYS, RUNS_PER_TASK, fresh_runs, random_runs, run_missing
from experiments._mnist_tables import show
from experiments._svgp import BATCH, EVERY, INDUCING, OBSERVED, PAIRS, STEPS


def settings() -> dict[str, Any]:
    """The settings that the results were measured with."""
    return {
        "machine": machine(),
        "device": "CPU, one thread",
        "tasks": PAIRS,
        "steps": STEPS,
        "every": EVERY,
        "batch": BATCH,
        "inducing": INDUCING,
        "observed": OBSERVED,
        "bounds": BOUNDS,
        "intervals": INTERVALS,
        "budget": BUDGET,
        "each": RUNS_PER_TASK,
        "fresh": FRESH,
        "models": MODELS,
        "warm": WARM_STARTS,
    }


def main() -> None:
    """Run what is missing, then show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--bounds", nargs="+", choices=list(BOUNDS), default=list(BOUNDS))
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--new-seeds", type=int, nargs="*", default=[0, 1, 2], help="of the tasks that are left out")
    parser.add_argument("--show", action="store_true", help="print tables and draw figures, without running anything")
    options = parser.parse_args()
    if not options.show:
        run(options)
    print(machine())
    show()
    print_results()
    from experiments._mnist_figures import draw

    draw()


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "settings.json").write_text(json.dumps(settings(), indent=1) + "\n")
    for bounds in options.bounds:
        run_missing("random", random_runs(bounds, options.seeds), RANDOM_KEYS)
        tune_families([FamilyStudy(bounds, model, seed) for model in options.models for seed in options.seeds])
        run_missing("fresh", fresh_runs(bounds, options.seeds), FRESH_KEYS)
    for bounds in options.bounds:
        measure_coverage(bounds, options.seeds)
    for bounds in options.bounds[::-1]:
        without = families_without(bounds, "ours", options.new_seeds)
        tune_families(without)
        run_new_tasks(without)
    for bounds in options.bounds:
        run_missing("fresh", fresh_runs(bounds, options.seeds, of_best_runs=True), FRESH_KEYS)


if __name__ == "__main__":
    main()
