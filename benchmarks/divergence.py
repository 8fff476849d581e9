"""Values that are finite and absurd: what an upper bound far above the stable rates costs.

Noisy quadratics, whose rates are stable below 2 and whose loss passes 1e12 within a few steps above. Upper bounds at 1,
4 and 16 times the stable rate; the value is the loss (mode "min"), the negative loss or 1 / (1 + loss) (mode "max",
without and with a bound of its own). Plans of `horizon`, `greedy` with every link, answers of a family of three such
tasks with every link, and warm starts of a task that was left out. With little noise the best rates are at the edge of
the stable ones, so the bound at 1 gives them away.

Regret is log(expected final loss of the schedule that was found / that of the best one), in closed form. Bars: with the
bound at 4 and 16 times the stable rate at most 0.1 above that with the bound at 1, in the mean over the seeds, and
nothing is returned whose value is worse than its first.

`python -m benchmarks.divergence` resumes from results/divergence.jsonl; `--report` prints what is there.
"""

import warnings
from collections.abc import Iterator
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete
from paceline import Schedule, tune, tune_tasks, warm_start
from paceline.model import LINKS
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Dynamic, Strategy, default_strategy
from paceline.traces import Mode
from paceline.tuner import Result

STABLE, LOWEST = 2.0, 2e-3
FACTORS = (1, 4, 16)  # of the upper bound, over the stable rate
STEPS, INTERVALS, SEEDS, PIECES = 300, 5, 4, 20
SINGLE = {"little noise": Quadratic(0.1), "noise": Quadratic(0.5)}  # the best rates of the first are the edge itself
FAMILY = {f"noise {noise:g}": Quadratic(noise, 100, power) for noise, power in ((0.3, 0.8), (0.6, 1.0), (1.2, 0.6))}
NEW = Quadratic(0.8, 100, 0.9)
READINGS: dict[str, Mode] = {"loss": "min", "negative loss": "max", "1 / (1 + loss)": "max"}


class ReadAs(QuadraticTraining):
    """A run whose values are read in another way; it is also observed before its first step."""

    def __init__(self, problem: Quadratic, seed: int, reading: str) -> None:
        super().__init__(problem, seed, every=5)
        self.reading = reading

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        """Train on to step `stop`."""
        if self.steps_done == 0:
            loss = self.problem.loss(self.theta)
            yield 0, dict.fromkeys(("raw", "averaged"), read_as(loss, self.reading))
        for step, losses in super().advance(schedule, stop):
            yield step, {weights: read_as(loss, self.reading) for weights, loss in losses.items()}


def read_as(loss: float, reading: str) -> float:
    """A loss as the value of a study."""
    return {"loss": loss, "negative loss": -loss, "1 / (1 + loss)": 1 / (1 + loss)}[reading]


@cache
def best_log_loss(problem: Quadratic) -> float:
    """The least log expected loss of a schedule in pieces."""
    return float(np.log(problem.expected_loss(problem.best_schedule(STEPS, PIECES, 400))[-1]))


def regret(problem: Quadratic, schedule: Schedule) -> float:
    """How far a schedule ends above the best one, in log."""
    with np.errstate(over="ignore", invalid="ignore"):
        expected = problem.expected_loss(schedule)[-1]
    return float(np.log(expected) - best_log_loss(problem))


def strategies() -> dict[str, Strategy]:
    """The methods that tune one run."""
    horizon = {f"horizon, cost {cost:g}": default_strategy(cost) for cost in (1, 1.5, 2.3, 5)}
    return {**horizon, **{f"greedy, {link}": Dynamic.greedy(link=link, intervals=10) for link in LINKS}}


def run(key: Key) -> dict[str, Any]:
    """One method with one upper bound: the regret, and whether what it returns is worse than the first value."""
    setting, method, seed = key
    name, reading, factor = setting.split(", ")
    bounds = (LOWEST, STABLE * float(factor))
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")
        if name == "family":
            return of_family(method, reading, bounds, seed)
        return of_one_run(SINGLE[name], method, reading, bounds, seed)


def of_one_run(problem: Quadratic, method: str, reading: str, bounds: tuple[float, float], seed: int) -> dict[str, Any]:
    """One run, tuned on the fly."""
    found = tune(
        partial(ReadAs, problem, seed, reading),
        steps=STEPS,
        lr=bounds,
        strategy=strategies()[method],
        mode=READINGS[reading],
        seed=seed,
        quiet=True,
    )
    return judged(problem, found, reading)


def of_family(method: str, reading: str, bounds: tuple[float, float], seed: int) -> dict[str, Any]:
    """A family's answers, or a run of a task that it did not know."""
    name, _, link = method.partition(", ")
    factories = {task: partial(ReadAs, p, 10 * seed + m, reading) for m, (task, p) in enumerate(FAMILY.items())}
    settings: dict[str, Any] = {"link": link} if link else {}
    with TemporaryDirectory() as folder:
        family = tune_tasks(
            factories,
            steps=STEPS,
            lr=bounds,
            mode=READINGS[reading],
            study=folder,
            seed=seed,
            quiet=True,
            intervals=INTERVALS,
            budget=15,
            infill="optimistic",
            **settings,
        )
        if name == "warm start":
            found = warm_start(folder, partial(ReadAs, NEW, 1_000 + seed, reading), seed=seed, quiet=True)
            return judged(NEW, found, reading)
    schedules = {task: answer.schedule for task, answer in family.answers.items()}
    ends = {task: FAMILY[task].expected_loss(schedule)[-1] for task, schedule in schedules.items()}
    worse = sum(is_worse(FAMILY[task], read_as(end, reading), reading) for task, end in ends.items())
    return {"regret": float(np.mean([regret(FAMILY[task], s) for task, s in schedules.items()])), "worse": worse}


def judged(problem: Quadratic, found: Result, reading: str) -> dict[str, Any]:
    """The row of a tuned run."""
    assert found.schedule is not None
    assert found.value is not None
    return {"regret": regret(problem, found.schedule), "worse": int(is_worse(problem, found.value, reading))}


def is_worse(problem: Quadratic, value: float, reading: str) -> bool:
    """Whether a value is worse than that of the untrained weights."""
    first = read_as(problem.loss(np.ones(problem.dims)), reading)
    return not (value <= first if READINGS[reading] == "min" else value >= first)


def measured() -> list[tuple[str, str, str]]:
    """Problem, method and reading of each line of the table."""
    two = tuple(READINGS)[:2]
    lines = [(name, method, reading) for name in SINGLE for method in strategies() for reading in two]
    lines += [("noise", method, "1 / (1 + loss)") for method in strategies() if method.startswith("horizon")]
    lines += [("family", f"family, {link}", "loss") for link in LINKS if link != "signed"]
    return lines + [("family", method, reading) for method in ("family", "warm start") for reading in READINGS]


def wanted() -> list[Key]:
    """All rows, seed by seed."""
    return [
        (f"{problem}, {reading}, {factor}", method, seed)
        for seed in range(SEEDS)
        for problem, method, reading in measured()
        for factor in FACTORS
    ]


def print_table(rows: Rows) -> None:
    """The regret with the bound at the stable rate, and what wider bounds add to it."""
    lines, worst, worse = list[list[str]](), -np.inf, 0
    for problem, method, reading in measured():
        of = {f: [rows.get((f"{problem}, {reading}, {f}", method, seed)) for seed in range(SEEDS)] for f in FACTORS}
        complete_seeds = [found for found in zip(*of.values(), strict=True) if None not in found]
        if not complete_seeds:
            continue
        regrets = np.array([[row["regret"] for row in found] for found in complete_seeds])  # pyright: ignore
        added = regrets[:, 1:] - regrets[:, :1]
        count = sum(row["worse"] for found in complete_seeds for row in found)  # pyright: ignore
        worst, worse = max(worst, float(added.mean(0).max())), worse + count
        columns = [
            f"{mean:+.2f} +- {deviation:.2f}" for mean, deviation in zip(added.mean(0), error(added), strict=True)
        ]
        first = f"{regrets[:, 0].mean():.2f}"
        lines.append([problem, method, reading, first, *columns, str(count), str(len(complete_seeds))])
    print(table(["problem", "method", "value", "bound at 1", "at 4: added", "at 16: added", "worse", "seeds"], lines))
    result("divergence_most_added_regret", worst)
    result("divergence_returned_worse_than_first", worse)


def error(values: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the seeds, by column."""
    return (
        np.std(values, axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(values.shape[1], np.nan)
    )


def main() -> None:
    """Complete the rows and report."""
    options = arguments(__doc__)
    keys = [key for key in wanted() if options.only in key[1] and options.problem in key[0]]
    rows = complete(
        RESULTS / "divergence.jsonl", keys, run, jobs=0 if options.report else options.jobs, limit=options.limit
    )
    print(machine())
    print_table(rows)
    print_results()


if __name__ == "__main__":
    main()
