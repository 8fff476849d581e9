"""Two families of five tasks: mean regret over tasks after 20, 50 and 100 runs in all.

Noisy quadratics: regret is log(expected final loss of a method's schedule / that of the best schedule of as many
pieces), both in closed form. Pairs of digits (`_digit_pairs`): the same against the best known schedule, by 20 runs
that no method uses. Methods observe noisy runs only. The noise of run i is the same for all. Against:

- random search: a Latin hypercube; each task keeps the schedule that ended best;
- independent: BoTorch, task by task (`_botorch`); the answer has the best posterior mean, anywhere or among runs made;
- one for all: random, each run on every task, the best mean;
- model, random runs: our model's answers without our choice of runs.

Bars: less than half the regret of random search, and less than independent optimisation; differences are paired by
seed. Rows are kept, so an interrupted benchmark continues. `--workers` works on that many seeds and methods at once.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._multitask_problems import PROBLEMS, Problem, Runs, problem_named
from benchmarks._report import machine, print_results, read_rows, result, table, with_error
from paceline import Schedule, TraceModel
from paceline.settings import FamilySettings
from paceline.strategy import Goal
from paceline.strategy.multitask import Family, Run, as_floats, initial_runs
from paceline.traces import Objective

ROWS = Path(__file__).parent / "results" / "tasks.jsonl"
BATCH, START = 5, 3  # runs at a time of multi-task tuning; Sobol runs of each task before BoTorch decides
Answers = dict[str, Schedule]
AnswersByBudget = Iterator[tuple[str, int, Answers]]  # method, budget, answers


def random_search(problem: Problem, seed: int, budgets: Sequence[int]) -> AnswersByBudget:
    for budget in budgets:
        runs = Runs(problem, seed)
        for run in initial_runs(problem.space, problem.tasks, budget, seed):
            runs.make(run)
        yield "random search", budget, runs.best_observed()


def one_for_all(problem: Problem, seed: int, budgets: Sequence[int]) -> AnswersByBudget:
    for budget in budgets:
        runs, tried = Runs(problem, seed), initial_runs(problem.space, ["all"], budget // len(problem.tasks), seed)
        for run in tried:
            for task in problem.tasks:
                runs.make(Run(task, run.x))
        means = np.mean([runs.finals(task)[1] for task in problem.tasks], 0)
        yield "one for all", budget, dict.fromkeys(problem.tasks, problem.space.schedule(tried[int(means.argmin())].x))


def independent(problem: Problem, seed: int, budgets: Sequence[int]) -> AnswersByBudget:
    """Tasks take turns; two answers for the same runs."""
    from benchmarks import _botorch

    runs, d = Runs(problem, seed), problem.space.intervals
    starts = {task: _botorch.sobol(START, d, 1000 * seed + m) for m, task in enumerate(problem.tasks)}
    for number in range(max(budgets) + 1):
        if number in budgets:
            pairs = [_botorch.best_mean(*runs.finals(task), seed) for task in problem.tasks]
            for which, name in enumerate(("independent, best run", "independent, best mean")):
                schedules = [problem.space.schedule(pair[which]) for pair in pairs]
                yield name, number, dict(zip(problem.tasks, schedules, strict=True))
        task, turn = problem.tasks[number % len(problem.tasks)], number // len(problem.tasks)
        x = starts[task][turn] if turn < START else _botorch.propose(*runs.finals(task), 10_000 * seed + number)
        runs.make(Run(task, as_floats(x)))


def strategy(problem: Problem, seed: int, infill: str = "variance") -> Family:
    goal = Goal(problem.space.lr_range, problem.space.steps, Objective(), seed, problem.tasks)
    return Family(goal, FamilySettings(intervals=problem.space.intervals, infill=infill))


def answers(plan: Family, runs: Runs, model: TraceModel) -> Answers:
    return {task: answer.schedule for task, answer in plan.answers(model, runs.traces).items()}


def model_after_random(problem: Problem, seed: int, budgets: Sequence[int]) -> AnswersByBudget:
    for budget in budgets:
        runs, plan = Runs(problem, seed), strategy(problem, seed)
        for run in initial_runs(problem.space, problem.tasks, budget, seed):
            runs.make(run)
        yield "model, random runs", budget, answers(plan, runs, plan.fit(runs.traces))


def multitask(
    problem: Problem, seed: int, budgets: Sequence[int], infill: str = "variance", label: str = "multi-task"
) -> AnswersByBudget:
    """Algorithm 2, five runs at a time."""
    plan, runs = strategy(problem, seed, infill), Runs(problem, seed)
    for run in plan.initial_runs():
        runs.make(run)
    while True:
        model = plan.fit(runs.traces)
        if len(runs.runs) in budgets:
            yield label, len(runs.runs), answers(plan, runs, model)
        if len(runs.runs) >= max(budgets):
            return
        for choice in plan.propose(model, runs.traces, count=BATCH):
            runs.make(choice.run)


def optimistic(problem: Problem, seed: int, budgets: Sequence[int]) -> AnswersByBudget:
    """The same, each run the optimistic schedule of a task in turn."""
    return multitask(problem, seed, budgets, "optimistic", "multi-task, optimistic")


METHODS: dict[str, tuple[Callable[[Problem, int, Sequence[int]], AnswersByBudget], tuple[str, ...]]] = {
    "multi-task": (multitask, ("multi-task",)),
    "multi-task, optimistic": (optimistic, ("multi-task, optimistic",)),
    "independent": (independent, ("independent, best mean", "independent, best run")),
    "model, random runs": (model_after_random, ("model, random runs",)),
    "random search": (random_search, ("random search",)),
    "one for all": (one_for_all, ("one for all",)),
}
LABELS = [name for _, names in METHODS.values() for name in names]


def work(name: str, method: str, seed: int, budgets: list[int]) -> Iterator[dict[str, Any]]:
    """Rows of one problem, method and seed, as they are made."""
    torch.set_num_threads(1)
    problem, began = problem_named(name), time.process_time()
    for label, budget, schedules in METHODS[method][0](problem, seed, budgets):
        spent = time.process_time() - began
        value = {task: problem.judge(task, schedule) for task, schedule in schedules.items()}
        x = {
            task: problem.space.lr_range.to_unit(schedule.multipliers).round(4).tolist()
            for task, schedule in schedules.items()
        }
        yield {
            "problem": name,
            "method": label,
            "seed": seed,
            "budget": budget,
            "log_loss": value,
            "x": x,
            "seconds": round(spent, 1),
        }


def run_job(rows: Path, *job: Any) -> float:
    """Do a job and add each row to the file at once. A line is one write, so jobs may share the file."""
    began = time.process_time()
    for row in work(*job):
        with rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="the first seed; those below 100 are for trying things")
    parser.add_argument("--budgets", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--show", action="store_true", help="show the finished rows, without running others")
    options = parser.parse_args()
    for name in options.problems:
        problem_named(name).best()  # fails now, and not after hours of work, if something is missing
    done = {(r["problem"], r["method"], r["seed"], r["budget"]) for r in read_rows(options.rows)}
    jobs = list[tuple[str, str, int, list[int]]]()
    for method in options.methods:  # the longest first
        for name in options.problems:
            for seed in range(options.first, options.first + options.seeds):
                labels = METHODS[method][1]
                left = [b for b in options.budgets if any((name, label, seed, b) not in done for label in labels)]
                if left and not options.show:
                    jobs.append((name, method, seed, left))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        started = {pool.submit(run_job, options.rows, *job): job for job in jobs}
        for job in as_completed(started):
            name, method, seed, _ = started[job]
            print(f"{name}, {method}, seed {seed}: {job.result():.0f} s", flush=True)
    print(machine())
    for name in options.problems:
        show(name, read_rows(options.rows), options.budgets)
    print_results()


def regrets(name: str, rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[int, float]]:
    """Method and budget -> seed -> mean regret over tasks."""
    best, values = problem_named(name).best(), dict[tuple[str, int], dict[int, float]]()
    for row in rows:
        if row["problem"] == name:
            each = [value - best[task] for task, value in row["log_loss"].items()]
            values.setdefault((row["method"], row["budget"]), {})[row["seed"]] = float(np.mean(each))
    return values


def show(name: str, rows: list[dict[str, Any]], budgets: list[int]) -> None:
    by_method = regrets(name, rows)
    plain, paired = list[list[object]](), list[list[object]]()
    for method in LABELS:
        own = [by_method.get((method, budget), {}) for budget in budgets]
        plain.append([method, *(with_error(list(seeds.values())) if seeds else "" for seeds in own)])
        row: list[object] = [method]
        for budget, seeds in zip(budgets, own, strict=True):
            ours = by_method.get(("multi-task", budget), {})
            gaps = [ours[seed] - other for seed, other in seeds.items() if seed in ours]
            row.append(with_error(gaps) if gaps and method != "multi-task" else "")
            if seeds:
                label = f"{method} {budget}".replace(",", "").replace("-", "_").replace(" ", "_")
                result(f"tasks_{name}_{label}", float(np.mean(list(seeds.values()))))
        if method != "multi-task":
            paired.append(row)
    runs = [f"{budget} runs" for budget in budgets]
    print(table([f"{name}: mean regret (seeds)", *runs], plain))
    print(table([f"{name}: multi-task less", *runs], paired))


if __name__ == "__main__":
    main()
