"""Few data: what do the first 20 % or 50 % of five forks say about runs to the end under schedules nobody has run?

Five forks at rates one tenth of the bounds apart, on a warm-up with a decay over the last 70 %, each with its own
noise, are seen up to a fifth or a half of the run. From these the law forecasts the final raw value (the mean of the
last three observations) of eight shapes at three peaks, which are then trained in full, and plans a schedule, which is
trained too. All of these share one noise within a seed, which is none of the forks'. Beside it NARX(1), exponential
link and log clock, on the same forks. Runs that diverged are left out. Bar: over all problems the 90 % band of the law
holds 0.80 to 0.97 of the final values.

`python -m benchmarks.few_data` resumes from results/few_data.jsonl; about 20 minutes on one core in all.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks._hindsight import SHAPES
from benchmarks._problems import PROBLEMS
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete, geometric_mean, load
from paceline import LearningRateRange, Objective, Schedule, Trace, TraceModel
from paceline.model import LawModel
from paceline.problems import QuadraticTraining
from paceline.training import values_by_weights

FILE = RESULTS / "few_data.jsonl"
SEEDS = {"quadratic 1": 4, "quadratic 0.1": 4, "digits": 3, "characters": 2}
SHARES = (0.2, 0.5)
FORKS, PEAKS = (0.3, 0.4, 0.5, 0.6, 0.7), (0.4, 0.5, 0.6)
BASE = SHAPES["warmup_stable_decay 0.7"]
TESTS = tuple(f"{shape}@{unit:g}" for shape in SHAPES for unit in PEAKS)


def schedule_of(name: str, method: str, seed: int) -> Schedule:
    """The schedule of `fork@unit` or of `shape@unit`."""
    kind, unit = method.split("@")
    peak = LearningRateRange(*PROBLEMS[name].bounds(seed)).from_unit(float(unit))
    return Schedule.of(SHAPES.get(kind, BASE), float(peak), PROBLEMS[name].steps)


def run(key: Key) -> dict[str, Any]:
    """Train once: a fork (all of its observations are kept), a schedule to be forecast, or the one planned."""
    name, method, seed = key
    if method.startswith("fork@"):
        return train(name, schedule_of(*key), seed, 1 + FORKS.index(float(method.split("@")[1])), keep_all=True)
    if not method.startswith("planned"):
        return train(name, schedule_of(*key), seed, 0)
    share = float(method.split()[1])
    law = LawModel.fit(observed_forks(load(FILE), name, seed, share))
    schedule = law.plan(steps=PROBLEMS[name].steps, lr=PROBLEMS[name].bounds(seed)).schedule
    return {**train(name, schedule, seed, 0), "schedule": schedule.to_json()}


def train(name: str, schedule: Schedule, seed: int, noise: int, *, keep_all: bool = False) -> dict[str, Any]:
    """One run with noise of its own; its final value is None where it diverged: twice its first loss, or none."""
    training = PROBLEMS[name].make(seed)
    training.reseed(1000 * (seed + 1) + noise)  # pyright: ignore[reportAttributeAccessIssue]
    first = training.problem.loss(training.theta) if isinstance(training, QuadraticTraining) else None
    with np.errstate(all="ignore"):
        observed = [
            (step, values_by_weights(value)["raw"]) for step, value in training.advance(schedule, schedule.steps)
        ]
    raw = np.array([value for _, value in observed])
    diverged = not np.all(raw <= 2 * (raw[0] if first is None else first))
    row: dict[str, Any] = {"final": None if diverged else float(f"{raw[-3:].mean():.6g}")}
    if keep_all and not diverged:
        row.update(steps=[observed[0][0], observed[-1][0]], raw=[float(f"{value:.5g}") for value in raw])
    return row


def observed_forks(rows: Rows, name: str, seed: int, share: float) -> list[Trace]:
    """The observations of the forks of a seed up to a share of the run; forks that diverged are left out."""
    traces = []
    for unit in FORKS:
        row = rows[name, f"fork@{unit:g}", seed]
        if row["final"] is None:
            continue
        steps = np.linspace(*row["steps"], len(row["raw"])).round().astype(int)
        observed = steps <= share * PROBLEMS[name].steps
        schedule = schedule_of(name, f"fork@{unit:g}", seed)
        traces.append(Trace(steps[observed], np.array(row["raw"])[observed], schedule, name=f"{unit:g}"))
    return traces


def last_steps(name: str) -> np.ndarray:
    """Where the last three observations lie."""
    return PROBLEMS[name].steps - np.array([20, 10, 0])


def law_draws(traces: list[Trace], name: str, schedules: Sequence[Schedule]) -> np.ndarray:
    """Draws of the final value under each schedule."""
    model = LawModel.fit(traces)
    return np.stack([model.forecast(s, last_steps(name)).draws.mean(1) for s in schedules])


def narx_draws(traces: list[Trace], name: str, schedules: Sequence[Schedule]) -> np.ndarray:
    """The same by NARX(1); a schedule is a table to it, so that what it learns from is the rate, not a multiplier."""
    steps = PROBLEMS[name].steps
    rows = np.arange(0, steps + 1, 5)

    def plain(schedule: Schedule) -> Schedule:
        return Schedule.from_table(rows, schedule(rows))

    runs = [
        Trace(t.steps[t.steps > 0], t.values[t.steps > 0], plain(t.schedule), name=t.name, objective=LOG)
        for t in traces
    ]
    points = np.unique(np.geomspace(10, steps, 30).round().astype(int))
    model = TraceModel.fit(runs, intervals=points, clock="log", link="exponential", order=1)
    return np.stack([model.forecast(plain(s), last_steps(name)).draws.mean(1) for s in schedules])


LOG = Objective(transform="log")
METHODS = {"law": law_draws, "NARX(1)": narx_draws}
KINDS = ("abs_log_error", "bias", "rank_correlation", "regret_of_chosen", "coverage90", "band_width")
HEADER = ["|log error|", "bias", "rank corr.", "regret chosen", "90 % band holds", "its width"]


def scores(draws: np.ndarray, truth: np.ndarray) -> list[float]:
    """Mean |log error|, median log error, rank correlation, regret of the schedule that looks best, band and width."""
    low, median, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=1)
    miss = np.log(median / truth)
    holds = np.mean((low <= truth) & (truth <= high))
    return [
        float(np.abs(miss).mean()),
        float(np.median(miss)),
        float(spearmanr(median, truth).statistic),
        float(truth[np.argmin(median)] / truth.min()),
        float(holds),
        float(np.mean(np.log(high / low))),
    ]


def evaluate(rows: Rows, name: str, share: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores of each method, one row a seed; and the planned run over others, and whether the law's band holds it."""
    values_of, planned_runs = {method: list[list[float]]() for method in METHODS}, list[list[float]]()
    for seed in range(SEEDS[name]):
        tests = [test for test in TESTS if rows[name, test, seed]["final"] is not None]
        truth = np.array([rows[name, test, seed]["final"] for test in tests])
        plan = rows[name, f"planned {share:g}", seed]
        schedules = [*(schedule_of(name, test, seed) for test in tests), Schedule.from_json(plan["schedule"])]
        draws_of = {
            method: draw(observed_forks(rows, name, seed, share), name, schedules) for method, draw in METHODS.items()
        }
        for method, draws in draws_of.items():
            values_of[method].append(scores(draws[:-1], truth))
        forks = [rows[name, f"fork@{unit:g}", seed]["final"] or np.inf for unit in FORKS]
        final, (low, high) = plan["final"] or np.inf, np.quantile(draws_of["law"][-1], [0.05, 0.95])
        planned_runs.append([*(final / np.array([truth.min(), np.median(truth), min(forks)])), low <= final <= high])
    return {method: np.array(values) for method, values in values_of.items()}, np.array(planned_runs)


def report(rows: Rows) -> None:
    """The tables of every share of the run, and figures over all problems."""
    for share in SHARES:
        lines, plans = list[list[object]](), list[list[object]]()
        overall = {method: list[np.ndarray]() for method in METHODS}
        ratios = list[np.ndarray]()
        for name in SEEDS:
            values_of, planned_runs = evaluate(rows, name, share)
            for method, values in values_of.items():
                overall[method].append(values.mean(0))
                lines.append([name, method, *(f"{value:.3f}" for value in values.mean(0))])
            plans.append([name, *(f"{value:.3f}" for value in [*planned_runs.mean(0), planned_runs[:, 0].max()])])
            ratios.append(planned_runs.mean(0))
            result(f"few_{share:g}_planned_over_best_{name.replace(' ', '_')}", ratios[-1][0])
            result(f"few_{share:g}_law_coverage90_{name.replace(' ', '_')}", float(values_of["law"][:, 4].mean()))
        for method, values in overall.items():
            lines.append(["all", method, *(f"{value:.3f}" for value in np.mean(values, 0))])
        print(f"\nFitted to the first {share:.0%} of five forks; means over seeds\n")
        print(table(["problem", "model", *HEADER], lines))
        print()
        over = ["best of the 24", "median of the 24", "best fork to its end", "90 % band holds it", "worst over best"]
        print(table(["planned run over", *over], plans))
        for method, values in overall.items():
            label = "law" if method == "law" else "narx"
            for kind, value in zip(KINDS, np.mean(values, 0), strict=True):
                result(f"few_{share:g}_{label}_{kind}", float(value))
        result(f"few_{share:g}_planned_over_best", geometric_mean([ratio[0] for ratio in ratios]))
        result(f"few_{share:g}_planned_in_band", float(np.mean([ratio[3] for ratio in ratios])))


def main() -> None:
    """Complete the runs and print the tables."""
    options = arguments(__doc__, jobs=1)
    torch.set_num_threads(1)
    problems = [name for name in SEEDS if options.problem in ("", name)]
    methods = [*(f"fork@{unit:g}" for unit in FORKS), *TESTS]
    first = [(name, method, seed) for name in problems for seed in range(SEEDS[name]) for method in methods]
    then = [(n, f"planned {share:g}", s) for n in problems for s in range(SEEDS[n]) for share in SHARES]
    jobs = 0 if options.report else options.jobs
    rows = complete(FILE, first, run, jobs=jobs, limit=options.limit)
    if all(key in rows for key in first):
        rows = complete(FILE, then, run, jobs=jobs, limit=options.limit)  # a plan needs the forks
    keys = [*first, *then]
    if any(key not in rows for key in keys) or options.problem:
        print(f"{sum(key in rows for key in keys)} of {len(keys)} runs are done: run it again to go on")
        return
    print(machine())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report(rows)
    diverged = sum(rows[key]["final"] is None for key in keys)
    print(
        f"\n{len(keys)} runs, {diverged} of them diverged, {sum(r['seconds'] for r in rows.values()) / 60:.0f} minutes"
    )
    print_results()


if __name__ == "__main__":
    main()
