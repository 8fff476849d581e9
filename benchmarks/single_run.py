"""One run without forks: `PaceLR` against what people use when they may train only once.

All within T steps, a range test included; same weights to start from, same data and bounds. The figure is the final
loss of the weights a method returns (raw; Schedule-Free's evaluation weights), mean over seeds, over that of the fixed
schedule that was best in hindsight, found on other seeds. Finished runs are kept in results/single_run.jsonl and not
run again; `--problem NAME` runs a part.
"""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import torch
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch.optim.lr_scheduler import CosineAnnealingLR

import paceline
from benchmarks._hindsight import hindsight
from benchmarks._plain import Plain, plain
from benchmarks._problems import PROBLEMS, Problem
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, arguments, complete, geometric_mean, ratios
from paceline.integrations import PaceLR, lambda_lr
from paceline.shapes import OneCycle
from paceline.strategy.single_run.rules import range_test_steps
from paceline.strategy.single_run.single_run_settings import SINGLE_RUN
from paceline.traces import Schedule

Method = Callable[[Problem, int], float]


def update(run: Plain, optimizer: torch.optim.Optimizer, batch: Any) -> torch.Tensor:
    """One update; the loss before it."""
    optimizer.zero_grad()
    loss = run.loss(run.model, batch)
    loss.backward()
    optimizer.step()
    return loss.detach()


def with_pace(problem: Problem, seed: int, *, closure: bool) -> float:
    run = plain(problem, seed)
    optimizer = run.optimizer()
    pace = PaceLR(optimizer, problem.bounds(seed), problem.steps, run.model)
    for _ in range(problem.steps):
        batch = next(run.batches)
        loss = update(run, optimizer, batch)
        pace.step((lambda: run.loss(run.model, batch)) if closure else loss)
    return run.evaluate(run.model)


def with_tune(problem: Problem, seed: int) -> float:
    """The same recipe through the loop of forks, observing every tenth step."""
    found = paceline.tune(lambda: problem.make(seed), steps=problem.steps, lr=problem.bounds(seed), cost=1.0, seed=seed)
    return found.history.forks[-1].last_values["raw"]


def with_schedule(problem: Problem, seed: int, schedule: Schedule) -> float:
    run = plain(problem, seed)
    return follow(run, run.optimizer(), schedule)


def follow(run: Plain, optimizer: torch.optim.Optimizer, schedule: Schedule) -> float:
    scheduler = lambda_lr(optimizer, schedule)
    for _ in range(schedule.steps):
        update(run, optimizer, next(run.batches))
        scheduler.step()
    return run.evaluate(run.model)


def untuned(problem: Problem, seed: int) -> float:
    """The same base with its peak at the geometric middle of the bounds."""
    low, high = problem.bounds(seed)
    return with_schedule(problem, seed, Schedule.of(SINGLE_RUN.base, (low * high) ** 0.5, problem.steps))


def range_test_one_cycle(problem: Problem, seed: int) -> float:
    """Smith's rule: a tenth of the rate at which the smoothed loss of a range test is lowest, then one cycle."""
    run, count = plain(problem, seed), range_test_steps(problem.steps)
    optimizer, weights = run.optimizer(), [p.detach().clone() for p in run.model.parameters()]
    fresh = optimizer.state_dict()
    rates = np.geomspace(*problem.bounds(seed), count)
    smoothed, lowest = 0.0, (np.inf, rates[0])
    for step, rate in enumerate(rates):
        optimizer.param_groups[0]["lr"] = rate
        smoothed = 0.9 * smoothed + 0.1 * float(update(run, optimizer, next(run.batches)))
        value = smoothed / (1 - 0.9 ** (step + 1))
        if not value < 4 * lowest[0]:
            break
        lowest = min(lowest, (value, rate))
    with torch.no_grad():
        for parameter, start in zip(run.model.parameters(), weights, strict=True):
            parameter.copy_(start)
    optimizer.load_state_dict(fresh)
    return follow(run, optimizer, Schedule.of(OneCycle(), lowest[1] / 10, problem.steps - count))


def schedule_free(problem: Problem, seed: int) -> float:
    """With its default rate."""
    run = plain(problem, seed)
    if problem.network:
        optimizer = AdamWScheduleFree(run.model.parameters(), weight_decay=_weight_decay(run))
    else:
        optimizer = SGDScheduleFree(run.model.parameters())
    optimizer.train()
    for _ in range(problem.steps):
        update(run, optimizer, next(run.batches))
    optimizer.eval()
    return run.evaluate(run.model)


def prodigy(problem: Problem, seed: int) -> float:
    """With rate 1 and the cosine schedule its authors recommend."""
    run = plain(problem, seed)
    with redirect_stdout(StringIO()):  # it prints its settings
        optimizer = Prodigy(run.model.parameters(), weight_decay=_weight_decay(run))
    scheduler = CosineAnnealingLR(optimizer, problem.steps)
    for _ in range(problem.steps):
        update(run, optimizer, next(run.batches))
        scheduler.step()
    return run.evaluate(run.model)


def in_hindsight(problem: Problem, seed: int) -> float:
    """The best fixed schedule, tuned on other seeds."""
    return with_schedule(problem, seed, Schedule.of(*hindsight(problem.name), problem.steps))


def _weight_decay(run: Plain) -> float:
    return float(run.optimizer().param_groups[0]["weight_decay"])


METHODS: dict[str, Method] = {
    "PaceLR(closure)": lambda p, s: with_pace(p, s, closure=True),
    "PaceLR(loss)": lambda p, s: with_pace(p, s, closure=False),
    "tune(cost=1)": with_tune,
    "untuned base": untuned,
    "range test, one-cycle": range_test_one_cycle,
    "Schedule-Free": schedule_free,
    "Prodigy": prodigy,
    "hindsight": in_hindsight,
}


def run(key: Key) -> dict[str, Any]:
    """One run of a method."""
    name, method, seed = key
    return {"raw": METHODS[method](PROBLEMS[name], seed)}


def main() -> None:
    options, problems = arguments(__doc__), [p for p in PROBLEMS.values() if p.counted]
    chosen = [p for p in problems if options.problem in ("", p.name)]
    keys = [(p.name, method, s) for p in reversed(chosen) for method in METHODS for s in range(p.seeds)]
    rows = complete(RESULTS / "single_run.jsonl", keys, run, jobs=0 if options.report else options.jobs)
    print(machine())
    print("final loss over that of the best fixed schedule in hindsight; mean over seeds\n")
    lines = []
    for name in METHODS:
        ratio = {p: ratios(rows, name, p.name, range(p.seeds), "raw")[0] for p in problems}
        every = geometric_mean(list(ratio.values()))
        networks = geometric_mean([r for p, r in ratio.items() if p.network])
        lines.append([name, *ratio.values(), every, networks])
        key = re.sub(r"\W+", "_", name.lower()).strip("_")
        result(f"single_run_{key}_all", every)
        result(f"single_run_{key}_networks", networks)
    print(table(["", *(p.name for p in problems), "all", "networks"], lines))
    print_results()


if __name__ == "__main__":
    main()
