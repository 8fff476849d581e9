"""The paper's first experiment: the learning rate of a residual network on CIFAR-10, tuned on the fly.

Claim: `horizon`, following the validation error, ends within 0.3 points of test accuracy of the best of 29 fixed
schedules on validation, for the price of 2.3 or 5 runs, and following the training loss at or below the lowest of them;
the paper's own algorithm (`greedy`) does neither. ResNet-20 for 40 epochs is where settings were chosen, ResNet-56 for
100 epochs is the result. It holds, three seeds each, but for the training loss of ResNet-56, 0.0012 and 0.0016 against
a cosine's 0.0009.

`python -m experiments.cifar` runs what is missing on one GPU, several studies at a time, and can be cut off anywhere;
`--show` prints the tables from `experiments/results/cifar/` and draws the figures of docs/experiments.md.
"""

import argparse
import fcntl
import multiprocessing
import signal
import sys
import time
import traceback
from pathlib import Path

from benchmarks._cifar import stored
from benchmarks._report import print_results, table
from experiments._cifar_studies import METHODS, Unit, experiment, run

RESULTS = Path(__file__).parent / "results" / "cifar"


def taken(todo: Path) -> Unit | None:
    """The first study of a list, which is then shorter: lines of depth, method and seed, which may be edited."""
    with todo.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first, *rest = [*filter(None, todo.read_text().splitlines()), ""]
        todo.write_text("\n".join(rest))
    if not first:
        return None
    depth, method, seed = first.split("|")
    return Unit(int(depth), method, int(seed))


def _work(todo: Path, runs: Path, results: Path) -> None:
    """Run studies until there are none."""
    import torch

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave the GPU tidily: others may share it
    torch.set_num_threads(1)
    while (unit := taken(todo)) is not None:
        began = time.perf_counter()
        try:
            run(unit, runs, results)
            print(f"{unit.name}: {time.perf_counter() - began:.0f} s", flush=True)
        except Exception:
            print(f"{unit.name} failed:\n{traceback.format_exc()}", flush=True)


def complete(units: list[Unit], runs: Path, results: Path, *, jobs: int, limit: float | None = None) -> None:
    """Run studies in `jobs` processes, at most for `limit` seconds if any; what is cut off goes on the next time.

    What waits is in `runs/todo.txt`, and may be edited: the first line is begun next.
    """
    runs.mkdir(parents=True, exist_ok=True)
    todo = runs / "todo.txt"
    todo.write_text("".join(f"{unit.depth}|{unit.method}|{unit.seed}\n" for unit in units))
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(todo, runs, results), daemon=True) for _ in range(jobs)]
    deadline = None if limit is None else time.monotonic() + limit
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    late = [worker for worker in workers if worker.is_alive()]
    for worker in late:
        worker.terminate()
    for worker in late:
        worker.join(20)
        worker.kill()
    if late:
        print(f"stopped after {limit:g} s: run it again to go on")


def show(results: Path) -> None:
    """Tables and figures of what is there."""
    from experiments import _cifar_figures as figures
    from experiments import _cifar_report as report

    for depth in (20, 56):
        studies = report.kept(results, depth)
        if not studies:
            continue
        groups = report.grouped(report.ends(studies))
        print(f"ResNet-{depth}, {studies[0].row['device']}; {studies[0].row['machine']}\n")
        report.print_ends(groups)
        print()
        report.print_bars(groups, depth)
        print()
        print(table(["the paper says of its algorithm", "verdict", "measured"], report.claims(groups, studies)))
        print()
        figures.draw(studies, groups, results, depth)
    print_results()


def main() -> None:
    """Run, or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, nargs="+", choices=[20, 56], default=[20, 56], help="only these")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="only these")
    parser.add_argument("--method", nargs="+", default=list(METHODS), help="only these")
    parser.add_argument("--jobs", type=int, default=4, help="studies at a time")
    parser.add_argument("--limit", type=float, help="stop after this many seconds")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "cifar", help="where studies go on")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where finished ones are kept")
    parser.add_argument("--show", action="store_true", help="only print tables and draw figures of what is there")
    asked = parser.parse_args()
    if asked.show:
        show(asked.results)
        return
    unknown = sorted(set(asked.method) - set(METHODS))
    if unknown:
        sys.exit("\n  ".join([f"no such method: {'; '.join(unknown)}. Expected some of:", *METHODS]))
    wanted = [
        unit
        for unit in experiment()
        if unit.depth in asked.depth and unit.seed in asked.seeds and unit.method in asked.method
    ]
    if not wanted:
        sys.exit("no study of the experiment has this depth, seed and method: `experiment()` lists those there are")
    todo = [unit for unit in wanted if not (asked.results / unit.name / "row.json").exists()]
    if not todo:
        print(f"nothing to run: all {len(wanted)} studies are in {asked.results}; --show prints their tables")
        return
    stored()  # or an end that says where to put the data
    complete(todo, asked.runs, asked.results, jobs=asked.jobs, limit=asked.limit)


if __name__ == "__main__":
    main()
