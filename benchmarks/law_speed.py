"""How long the law takes: bars for a fit in under 1 s and a forecast in under 100 ms, on 2 cores.

The fit is to five forks with 200 observations each, the noisy quadratic at five rates; the forecast is of 1,000 draws
at 100 steps, for a new run and for one that goes on. Medians of several, after a first that is not counted. Then
growth: up to 100 runs, and up to 10,000 observations a run. Timings are those of one machine; growth carries over.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks._report import machine, print_results, result, table
from paceline import Schedule, Trace
from paceline.model import LawModel
from paceline.problems import Quadratic
from paceline.shapes import WarmupStableDecay

STEPS, OBSERVED = 2000, 200


def runs(count: int, observed: int = OBSERVED) -> list[Trace]:
    """Runs of the noisy quadratic at different rates: its expected loss, with noise."""
    problem, rng, traces = Quadratic(1.0, 100), np.random.default_rng(0), []
    length = max(STEPS, observed)
    for i, rate in enumerate(np.geomspace(0.02, 0.5, count)):
        schedule = Schedule.of(WarmupStableDecay(warmup=0.02, decay=0.7), float(rate), length)
        steps = np.linspace(length / observed, length, observed).round().astype(int)
        loss = problem.expected_loss(schedule)[steps] * np.exp(0.05 * rng.standard_normal(observed))
        traces.append(Trace(steps, loss, schedule, name=str(i)))
    return traces


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Median over some repeats; the first one is not counted."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def fitted(traces: list[Trace]) -> LawModel:
    return LawModel.fit(traces)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print(f"{machine()}, {torch.get_num_threads()} torch threads")
    five = runs(5)
    model, ahead = fitted(five), Schedule.of("cosine", 0.3, STEPS)
    steps, half = np.linspace(20, STEPS, 100).astype(int), five[2].head(100)
    later = np.linspace(half.last_step, STEPS, 100).astype(int)
    longer = [*five[:4], five[4].head(150)]
    early = fitted(longer)
    rows = [
        ["fit to 5 forks of 200 observations", seconds(lambda: fitted(five), repeats)],
        ["update of it with 50 more of one", seconds(lambda: early.update([five[4]]), repeats)],
        ["forecast of a new run, 1,000 draws at 100 steps", seconds(lambda: model.forecast(ahead, steps), 20)],
        ["forecast of one that goes on", seconds(lambda: model.forecast(ahead, later, start=half), 20)],
    ]
    for family in ("shape", "multipliers", "free"):
        plan = lambda f=family: model.plan(steps=STEPS, lr=(1e-3, 1.0), family=f)  # noqa: E731
        rows.append([f"plan, {family}", seconds(plan, repeats)])
    print(table(["what", "seconds, median"], rows))
    for name, row in zip(("fit", "update", "forecast", "forecast_going_on"), rows, strict=False):
        result(f"law_{name}_ms", 1e3 * float(str(row[1])))
    growth = list[list[object]]()
    for count in (1, 5, 20, 50, 100):
        some = runs(count)
        duration = seconds(lambda traces=some: fitted(traces), 3)
        growth.append([f"{count} runs of {OBSERVED}", duration])
        result(f"law_fit_s_{count}_runs", duration)
    for observed in (1000, 10_000):
        some = runs(5, observed)
        duration = seconds(lambda traces=some: fitted(traces), 3)
        growth.append([f"5 runs of {observed:,}", duration])
        result(f"law_fit_s_5_runs_of_{observed}", duration)
    print()
    print(table(["fit to", "seconds, median of 3"], growth))
    print_results()


if __name__ == "__main__":
    main()
