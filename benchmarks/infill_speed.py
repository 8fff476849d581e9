"""How long one infill decision takes: a bar of 10 s for 5 tasks, 20 runs, d = 5, L = 2 on 2 cores.

The criterion that decides must rank 200 random candidates as one of ten times the draws does, at a rank correlation of
0.9 or more. A decision is a fit from nothing, the optimistic set, screening, moving and comparing. Runs are of noisy
quadratics with different spectra and noises. Then growth, up to 10 tasks and 100 runs. Seconds are those of the wall
and of the process (one thread); they differ where a machine is busy.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks._family import BOUNDS, INTERVALS, STEPS, family, observed
from benchmarks._report import machine, print_results, result, table
from paceline import Trace, TraceModel
from paceline.settings import FamilySettings, InfillBudget
from paceline.strategy import Goal
from paceline.strategy.multitask import Criterion, Family, LinearCriterion, Space, initial_runs
from paceline.traces import Objective

T = TypeVar("T")
SPACE = Space(BOUNDS, STEPS, INTERVALS)


def runs(tasks: int, count: int) -> list[Trace]:
    problems = family(tasks)
    first = initial_runs(SPACE, list(problems), count, seed=1)
    return [
        observed(problems[run.task], SPACE.schedule(run.x), i, task=run.task, name=str(i))
        for i, run in enumerate(first)
    ]


def seconds(action: Callable[[], T]) -> tuple[T, float, float]:
    wall, own = time.perf_counter(), time.process_time()
    done = action()
    return done, time.perf_counter() - wall, time.process_time() - own


def ranks(model: TraceModel, reference: torch.Tensor, infill: InfillBudget, count: int, most: int) -> list[float]:
    """Rank correlation with ten times the draws of: the criterion, the one that moves, the linearised one."""
    lengths, tasks = SPACE.lengths(model), torch.arange(count) % len(model.encoder.tasks)
    x = torch.rand(count, INTERVALS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def gains(outer: int, inner: int, seed: int) -> np.ndarray:
        generator = torch.Generator().manual_seed(seed)
        criterion = Criterion.of(model, reference, lengths, outer_draws=outer, inner_draws=inner, generator=generator)
        with torch.no_grad():
            return torch.cat([criterion.gain(x[i : i + 1], tasks[i : i + 1]) for i in range(count)]).numpy()

    large = gains(most * infill.outer_draws // 2, 2 * infill.inner_draws, seed=7)
    all_gains = [gains(outer, infill.inner_draws, seed=8) for outer in (infill.outer_draws, infill.rough_draws)]
    with torch.no_grad():
        all_gains.append(LinearCriterion.of(model, reference, lengths).gain(x, tasks).numpy())
    return [float(spearmanr(gain, large).statistic) for gain in all_gains]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", nargs="+", default=["exponential", "signed"])
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--growth", nargs="*", default=["5,50", "5,100", "10,20", "10,50", "10,100"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{machine()}, 1 torch thread")
    rows, infill = list[list[object]](), InfillBudget()
    for link in options.links:
        for tasks, count in [(5, 20), *(tuple(map(int, pair.split(","))) for pair in options.growth)]:
            traces = runs(tasks, count)
            goal = Goal(BOUNDS, STEPS, Objective(), tasks=tuple(family(tasks)))
            strategy = Family(goal, FamilySettings(intervals=INTERVALS, link=link))
            model, fit, fit_own = seconds(lambda s=strategy, m=traces: s.fit(m))
            (choice,), search, search_own = seconds(lambda s=strategy, f=model, m=traces: s.propose(f, m))
            agree = [np.nan] * 3
            if (tasks, count) == (5, 20):
                agree = ranks(model, choice.reference, infill, options.candidates, most=10)
                result(f"infill_{link}_wall_s", fit + search)
                result(f"infill_{link}_rank_correlation", agree[0])
            rows.append([link, tasks, count, fit, search, fit + search, fit_own + search_own, choice.cost, *agree])
            print(rows[-1], flush=True)
            result(f"infill_{link}_{tasks}_tasks_{count}_runs_s", fit + search)
    header = ["link", "tasks", "runs", "fit s", "search s", "decision s", "of the process", "intervals drawn"]
    print(table([*header, "rank: criterion", "rank: moving", "rank: linearised"], rows))
    print_results()


if __name__ == "__main__":
    main()
