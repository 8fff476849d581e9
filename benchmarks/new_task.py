"""One task of a family is left out and trained once, with what the others have shown: how far from its optimum it ends.

Eight noisy quadratics like those of `benchmarks.tasks`, runs of 1,000 steps; Algorithm 2 (`infill="optimistic"`)
makes 56 runs of the seven others, then the eighth is trained with the same noise by each of:

- universal: the schedule that is best on average over where the task may lie;
- probe then best: the most informative first interval, then the best schedule given what it showed;
- dynamic, point: the rest is planned anew at every change point, with the task at its most probable place (the paper);
- dynamic, integrated: the same with the task's place integrated out (ours);
- cold: `horizon` at the same total of steps, which knows nothing of the family.

One run of all, and two forks against a cold start of cost 2, and of 2.3, its default. Judged by log(expected final loss
of the schedule that was run / that of the best schedule of twenty pieces), in closed form, so that the luck of a run is
not in it; what the raw weights of the run really ended at is shown beside it. Bars: the integrated version ends below
the cold start and below the universal schedule, on average. Rows are kept in results/new_task.jsonl, so an interrupted
run goes on.
"""

import argparse
import json
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks._family import BOUNDS, EVERY, INTERVALS, family, observed
from benchmarks._report import machine, print_results, read_rows, result, table, with_error
from paceline import tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.settings import FamilySettings, NewTaskSettings
from paceline.strategy import Goal, NewTask
from paceline.strategy.multitask import Family, Run, Space
from paceline.traces import Objective, Trace

ROWS = Path(__file__).parent / "results" / "new_task.jsonl"
TASKS, STEPS, RUNS, BATCH, PIECES = 8, 1000, 56, 7, 20
SPACE = Space(BOUNDS, STEPS, INTERVALS)
WARM: dict[str, dict[str, Any]] = {
    "dynamic, integrated": {},
    "universal": {"method": "universal"},
    "dynamic, point": {"location": "point"},
    "probe then best": {"method": "probe", "probe": STEPS // INTERVALS},
    "dynamic, integrated, 2 forks": {"forks": 2},
}
COLD = {"cold": 1.0, "cold, cost 2": 2.0, "cold, cost 2.3": 2.3}
COMPARED = {"dynamic, integrated": ["cold", "universal", "probe then best", "dynamic, point"]}
COMPARED["dynamic, integrated, 2 forks"] = ["cold, cost 2", "cold, cost 2.3"]


def known_runs(problems: dict[str, Quadratic], seed: int) -> tuple[Family, list[Trace]]:
    """The runs of a family that Algorithm 2 chooses, with its settings."""
    goal = Goal(BOUNDS, STEPS, Objective(), seed, tuple(problems))
    plan, traces = Family(goal, FamilySettings(intervals=INTERVALS, infill="optimistic")), list[Trace]()

    def make(run: Run) -> None:
        number = len(traces)
        schedule = SPACE.schedule(run.x)
        traces.append(observed(problems[run.task], schedule, 10_000 * seed + number, task=run.task, name=str(number)))

    for run in plan.initial_runs():
        make(run)
    while len(traces) < RUNS:
        for choice in plan.propose(plan.fit(traces), traces, count=BATCH):
            make(choice.run)
    return plan, traces


class ObservedFromStart(QuadraticTraining):
    """A run that is also observed before its first step, like those of the family."""

    def advance(self, schedule, stop):
        if self.steps_done == 0:
            loss = self.problem.loss(self.theta)
            yield 0, {"raw": loss, "averaged": loss}
        yield from super().advance(schedule, stop)


def work(left_out: str, seed: int, methods: list[str], rows_path: Path) -> str:
    """Train the task that was left out by each method, and keep each row at once."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problems = family(TASKS)
    new = problems.pop(left_out)
    best = new.expected_loss(new.best_schedule(STEPS, PIECES, 400))[-1]
    strategy = None
    for method in methods:
        settings: dict[str, Any] = {"cost": COLD[method]} if method in COLD else {}
        if method in WARM:
            if strategy is None:
                plan, traces = known_runs(problems, seed)
                strategy = partial(NewTask, plan, tuple(traces), plan.fit(traces))
            settings["strategy"] = strategy(settings=NewTaskSettings(**WARM[method]))
        run_class = QuadraticTraining if method in COLD else ObservedFromStart
        make = partial(run_class, new, 1_000_000 + seed, every=EVERY)
        with TemporaryDirectory() as folder:
            tuned = tune(make, steps=STEPS, lr=BOUNDS, seed=seed, study=folder, quiet=True, **settings)
        assert tuned.schedule is not None
        assert tuned.fork is not None
        row = {
            "task": left_out,
            "seed": seed,
            "method": method,
            "expected": float(np.log(new.expected_loss(tuned.schedule)[-1] / best)),
            "ended": float(np.log(tuned.history.fork(tuned.fork).final_value / best)),
            "decide": tuned.seconds["decide"],
            "x": BOUNDS.to_unit(tuned.schedule.multipliers).round(4).tolist(),
        }
        with rows_path.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return f"{left_out}, seed {seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--show", action="store_true", help="show the finished rows, without running others")
    options = parser.parse_args()
    done = {(r["task"], r["seed"], r["method"]) for r in read_rows(options.rows)}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        started = list[Any]()
        for seed in range(options.first, options.first + (0 if options.show else options.seeds)):
            for task in family(TASKS):
                left = [method for method in (*COLD, *WARM) if (task, seed, method) not in done]
                if left:
                    started.append(pool.submit(work, task, seed, left, options.rows))
        for job in as_completed(started):
            print(job.result(), flush=True)
    print(machine())
    show(read_rows(options.rows))
    print_results()


def show(rows: list[dict[str, Any]]) -> None:
    """Means over tasks and seeds, and differences paired by task and seed; tasks one by one."""
    by = {(r["method"], r["task"], r["seed"]): r for r in rows}
    tasks, lines, gaps = list(family(TASKS)), list[list[object]](), list[list[object]]()
    for method in (*COLD, *WARM):
        own = [r for r in rows if r["method"] == method]
        if not own:
            continue
        each = [[r["expected"] for r in own if r["task"] == task] for task in tasks]
        lines.append(
            [method, *(with_error([r[what] for r in own]) for what in ("expected", "ended"))]
            + [f"{np.mean(values):.2f}" if values else "" for values in each]
            + [f"{np.mean([r['decide'] for r in own]):.2g}"]
        )
        result(f"new_task_{method.replace(',', '').replace(' ', '_')}", float(np.mean([r["expected"] for r in own])))
    names = [task.replace("noise ", "").replace("power ", "") for task in tasks]
    print(table(["log ratio to the optimum (runs)", "expected", "as it ended", *names, "s deciding"], lines))
    for ours, others in COMPARED.items():
        for other in others:
            both = [(r, by[key]) for r in rows if r["method"] == ours and (key := (other, r["task"], r["seed"])) in by]
            row: list[object] = [f"{ours} less {other}"]
            row += [with_error([a[what] - b[what] for a, b in both]) for what in ("expected", "ended")]
            gaps.append(row)
    print(table(["paired by task and seed", "expected", "as it ended"], gaps))


if __name__ == "__main__":
    main()
