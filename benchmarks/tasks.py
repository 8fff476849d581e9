"""A family of five noisy quadratics: mean regret over tasks after 20, 50 and 100 runs in all.

Regret is log(expected final loss of a method's schedule / that of the best schedule of as many pieces), both in closed
form, so the luck of a run is not in it; methods see nothing but noisy runs. Against random search (a Latin hypercube;
each task keeps the schedule that ended best), Bayesian optimisation of each task on its own (expected improvement on
the final value, Matern-5/2, `strategy/baselines/regression`; not BoTorch, which is no dependency), one schedule for all
(random, each run on every task, the best mean), and the model's answers after random runs. Bars: less than half the
regret of random search, and less than independent optimisation. Rows are kept, so an interrupted run goes on.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks._family import BOUNDS, INTERVALS, STEPS, family, observed
from benchmarks._report import machine, print_results, result, table
from paceline import Schedule, Trace
from paceline.problems import Quadratic
from paceline.strategy.baselines.regression import fit, mean_at, variance_at
from paceline.strategy.multitask import Family, Run, Space, first_runs

ROWS = Path(__file__).parent / "results" / "tasks.jsonl"
SPACE, BATCH = Space(BOUNDS, STEPS, INTERVALS), 5
LENGTHSCALES = (0.2, 0.4, 0.8, 1.6, 3.2)
Answers = dict[str, Schedule]


class Runs:
    """The runs of one method and seed; the noise of run i is that of its number."""

    def __init__(self, problems: dict[str, Quadratic], seed: int) -> None:
        self.problems, self.seed, self.traces, self.runs = problems, seed, list[Trace](), list[Run]()

    def make(self, run: Run) -> None:
        number = len(self.runs)
        self.runs.append(run)
        schedule = SPACE.schedule(run.x)
        noise = 10_000 * self.seed + number
        self.traces.append(observed(self.problems[run.task], schedule, noise, task=run.task, name=str(number)))

    def finals(self, task: str) -> tuple[np.ndarray, np.ndarray]:
        """x and final log losses (mean over the last three observations) of a task's runs."""
        own = [i for i, run in enumerate(self.runs) if run.task == task]
        ends = [float(np.log(self.traces[i].values[-3:]).mean()) for i in own]
        return np.array([self.runs[i].x for i in own]), np.array(ends)

    def best_seen(self) -> Answers:
        found = {task: self.finals(task) for task in self.problems}
        return {task: SPACE.schedule(x[y.argmin()]) for task, (x, y) in found.items()}


def random_search(problems: dict[str, Quadratic], seed: int, budgets: list[int]) -> dict[int, Answers]:
    answers = {}
    for budget in budgets:
        runs = Runs(problems, seed)
        for run in first_runs(SPACE, list(problems), budget, seed):
            runs.make(run)
        answers[budget] = runs.best_seen()
    return answers


def model_after_random(problems: dict[str, Quadratic], seed: int, budgets: list[int]) -> dict[int, Answers]:
    answers = {}
    for budget in budgets:
        runs, plan = Runs(problems, seed), strategy(problems, seed)
        for run in first_runs(SPACE, list(problems), budget, seed):
            runs.make(run)
        found = plan.answers(plan.fit(runs.traces), runs.traces)
        answers[budget] = {task: answer.schedule for task, answer in found.items()}
    return answers


def one_for_all(problems: dict[str, Quadratic], seed: int, budgets: list[int]) -> dict[int, Answers]:
    answers = {}
    for budget in budgets:
        runs = Runs(problems, seed)
        tried = first_runs(SPACE, ["all"], budget // len(problems), seed)
        for run in tried:
            for task in problems:
                runs.make(Run(task, run.x))
        means = np.mean([runs.finals(task)[1] for task in problems], 0)
        best = SPACE.schedule(tried[int(means.argmin())].x)
        answers[budget] = dict.fromkeys(problems, best)
    return answers


def independent(problems: dict[str, Quadratic], seed: int, budgets: list[int]) -> dict[int, Answers]:
    """Expected improvement, task by task; the answer is the run with the best posterior mean."""
    runs, answers, rng = Runs(problems, seed), dict[int, Answers](), np.random.default_rng([seed, 5])
    for run in first_runs(SPACE, list(problems), 2 * len(problems), seed):
        runs.make(run)
    for number in range(len(runs.runs), max(budgets) + 1):
        if number in budgets:
            answers[number] = {task: SPACE.schedule(regress(*runs.finals(task), rng)[0]) for task in problems}
        task = list(problems)[number % len(problems)]
        runs.make(Run(task, tuple(float(v) for v in regress(*runs.finals(task), rng)[1])))
    return answers


def regress(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The x seen with the best posterior mean, and the x of largest expected improvement on it."""
    from scipy.stats import norm

    def kernel(a: np.ndarray, b: np.ndarray, lengthscale: float) -> np.ndarray:
        r = np.sqrt(5) * np.linalg.norm(a[:, None] - b[None], axis=-1) / lengthscale
        return (1 + r + r**2 / 3) * np.exp(-r)

    centre, scale = y.mean(), y.std() + 1e-9
    z = (y - centre) / scale
    found = fit([kernel(x, x, lengthscale) for lengthscale in LENGTHSCALES], z)
    lengthscale, gram = LENGTHSCALES[found.kernel], kernel(x, x, LENGTHSCALES[found.kernel])
    fitted = mean_at(gram, gram, z, found.noise)
    best = x[fitted.argmin()]
    near = np.clip(best + 0.1 * rng.standard_normal((500, x.shape[1])), 0, 1)
    tried = np.concatenate([rng.uniform(size=(1500, x.shape[1])), near])
    cross = kernel(x, tried, lengthscale)
    mean = mean_at(gram, cross, z, found.noise)
    deviation = np.sqrt(found.variance * variance_at(gram, cross, found.noise))
    u = (fitted.min() - mean) / deviation
    return best, tried[(deviation * (u * norm.cdf(u) + norm.pdf(u))).argmax()]


def strategy(problems: dict[str, Quadratic], seed: int) -> Family:
    return Family(SPACE, tuple(problems), link="signed", initial=2 * len(problems), seed=seed)


def multitask(problems: dict[str, Quadratic], seed: int, budgets: list[int]) -> dict[int, Answers]:
    """Algorithm 2, five runs at a time."""
    plan, runs, answers = strategy(problems, seed), Runs(problems, seed), dict[int, Answers]()
    for run in plan.first():
        runs.make(run)
    while True:
        model = plan.fit(runs.traces)
        if len(runs.runs) in budgets:
            found = plan.answers(model, runs.traces)
            answers[len(runs.runs)] = {task: answer.schedule for task, answer in found.items()}
        if len(runs.runs) >= max(budgets):
            return answers
        for choice in plan.propose(model, runs.traces, count=BATCH):
            runs.make(choice.run)


METHODS = {
    "random search": random_search,
    "independent": independent,
    "one for all": one_for_all,
    "model, random runs": model_after_random,
    "multi-task": multitask,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budgets", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--rows", type=Path, default=ROWS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    problems = family(5)
    best = {task: p.expected_loss(p.best_schedule(STEPS, INTERVALS, 400))[-1] for task, p in problems.items()}
    rows = [json.loads(line) for line in chosen.rows.read_text().splitlines()] if chosen.rows.exists() else []
    done = {(row["method"], row["seed"], row["budget"]) for row in rows}
    for seed in range(100, 100 + chosen.seeds):
        for method in chosen.methods:
            left = [budget for budget in chosen.budgets if (method, seed, budget) not in done]
            if not left:
                continue
            began = time.perf_counter()
            for budget, answers in METHODS[method](problems, seed, left).items():
                regret = {
                    task: float(np.log(problems[task].expected_loss(schedule)[-1] / best[task]))
                    for task, schedule in answers.items()
                }
                rows.append({"method": method, "seed": seed, "budget": budget, "regret": regret})
                with chosen.rows.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            print(f"{method}, seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
    print(machine())
    shown = list[list[object]]()
    for method in METHODS:
        row: list[object] = [method]
        for budget in chosen.budgets:
            each = [np.mean(list(r["regret"].values())) for r in rows if (r["method"], r["budget"]) == (method, budget)]
            if each:
                error = float(np.std(each, ddof=1) / len(each) ** 0.5) if len(each) > 1 else np.nan
                row.append(f"{np.mean(each):.3f} +- {error:.3f} ({len(each)})")
                result(
                    f"tasks_{method.replace(',', '').replace(' ', '_').replace('-', '_')}_{budget}",
                    float(np.mean(each)),
                )
            else:
                row.append("")
        shown.append(row)
    print(table(["mean regret (seeds)", *(f"{budget} runs" for budget in chosen.budgets)], shown))
    print_results()


if __name__ == "__main__":
    main()
