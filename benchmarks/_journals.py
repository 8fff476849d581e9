"""Long journals, written by the journal's own code, for measuring what reads them.

Three shapes. A population: 100 forks side by side, a fifth of them replaced by clones of the best at every decision,
which carries a ranking, a forecast per clone and a surface; each report has four observations of two kinds of weights.
A random search, which a tuner can continue.
A family: runs of ten tasks, five intervals each, ten runs a decision, forty observations a run.
"""

import json
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from paceline.shapes import Constant
from paceline.strategy import FixedSchedules, Goal
from paceline.study import Created, Decided, Dropped, Event, Interval, Report, because, write_settings
from paceline.study.journal_line import write_line
from paceline.traces import LearningRateRange, Objective, Schedule

LIVING, REPLACED, INTERVAL = 100, 20, 100
TASKS, RUNS, RUN_STEPS = [f"task {i}" for i in range(10)], 10, 1_000


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def _details(rng: np.random.Generator, ranked: list[int], clones: list[int], step: int) -> dict[str, Any]:
    value = 1 / (1 + step / 1_000)
    rates, values = np.logspace(-5, -1, 21), np.linspace(0.5 * value, 2 * value, 15)
    grid = [[_number(v) for v in row] for row in rng.normal(size=(15, 21))]
    return {
        "ranking": [{"fork": n, "value": _number(value * (1 + 0.01 * i))} for i, n in enumerate(ranked)],
        "forecast": [
            {"fork": n, "steps": [step + INTERVAL], "low": [0.9 * value], "median": [value], "high": [1.1 * value]}
            for n in clones
        ],
        "surface": {
            "values": [_number(v) for v in values],
            "rates": [_number(r) for r in rates],
            "latents": [{"mean": grid, "deviation": grid}],
        },
    }


def population(events: int) -> Generator[Event]:
    """So many events of a study of one run."""
    rng, steps = np.random.default_rng(0), INTERVAL * (events // (2 * LIVING) + 2)
    strategy = {"strategy": "pbt", "weights": "raw"}
    settings = {"lr": [1e-5, 1e-1], "steps": steps, "mode": "min", "seed": 0, "strategy": strategy}
    yield Created({**settings, "total_steps": LIVING * steps})
    living = {n: Schedule([10 ** rng.uniform(-5, -1)], [0, INTERVAL], steps) for n in range(LIVING)}
    born = LIVING
    yield Decided(
        1,
        0,
        (because("start", rates=[float(s.multipliers[0]) for s in living.values()]),),
        {"proposals": LIVING},
        0.001,
    )
    for number, schedule in living.items():
        yield Interval(number, None, 0, INTERVAL, schedule, 1)
    for round_ in range(2, 1_000_000):
        step = (round_ - 1) * INTERVAL
        for number in living:
            at = tuple(range(step - INTERVAL + 25, step + 1, 25))
            raw = tuple(float(v) for v in (1 + 0.1 * rng.random(4)) / (1 + np.array(at) / 1_000))
            yield Report(number, step - INTERVAL, step, at, {"raw": raw, "averaged": tuple(0.9 * v for v in raw)})
        ranked = [int(n) for n in rng.permutation(list(living))]
        best, dropped = ranked[0], ranked[-REPLACED:]
        clones = list(range(born, born + REPLACED))
        why = because("factor", factor=0.8, fork=best)
        reasons = [because("clone", fork=n, parent=best, rate=0.01, why=why) for n in clones]
        yield Decided(round_, step, tuple(reasons), _details(rng, ranked, clones, step), 0.1)
        for number in dropped:
            yield Dropped(number, step, because("behind", value=0.5))
            del living[number]
        for number in clones:
            living[number] = living[best]
        born += REPLACED
        for number, schedule in living.items():
            factor = 10 ** rng.uniform(-0.1, 0.1) if number in clones else 1.0
            living[number] = schedule.extend(float(schedule.multipliers[-1]) * factor, step + INTERVAL)
            parent = best if number in clones else None
            yield Interval(number, parent, step, step + INTERVAL, living[number], round_)


def family(events: int) -> Generator[Event]:
    """So many events of a family of tasks."""
    rng = np.random.default_rng(0)
    strategy = {
        "strategy": "multitask",
        "weights": "raw",
        "intervals": 5,
        "base": {"name": "constant"},
        "budget": events,
    }
    settings = {"lr": [1e-5, 1e-1], "steps": RUN_STEPS, "mode": "min", "seed": 0, "tasks": TASKS, "strategy": strategy}
    yield Created({**settings, "total_steps": RUN_STEPS * events // 2})
    best = dict[int, int]()
    at = tuple(range(25, RUN_STEPS + 1, 25))
    for round_ in range(1, 1_000_000):
        runs = range((round_ - 1) * RUNS, round_ * RUNS)
        reasons = tuple(
            because("text", text=f"run {n} of {TASKS[n % 10]!r}: the variance is expected to fall") for n in runs
        )
        details = {
            "best": [{"task": TASKS[t], "fork": n, "value": 0.5} for t, n in best.items()],
            "embedding": [{"task": task, "at": [_number(v) for v in rng.normal(size=2)]} for task in TASKS],
            "proposals": RUNS,
        }
        yield Decided(round_, 0 if round_ == 1 else RUN_STEPS, reasons, details, 0.5)
        for n in runs:
            schedule = Schedule(10 ** rng.uniform(-5, -1, 5), np.linspace(0, RUN_STEPS, 6))
            yield Interval(n, None, 0, RUN_STEPS, schedule, round_, task=n % 10)
        for n in runs:
            raw = tuple(float(v) for v in (1 + 0.1 * rng.random(40)) / (1 + np.array(at) / 100))
            yield Report(n, 0, RUN_STEPS, at, {"raw": raw})
            best.setdefault(n % 10, n)


def search(events: int) -> Generator[Event]:
    """A random search of one run of `events / 10` forks, each with five intervals; five forks have not ended yet."""
    strategy = search_strategy(events)
    goal = Goal(LearningRateRange(1e-5, 1e-1), RUN_STEPS, Objective())
    settings: dict[str, Any] = {"lr": [1e-5, 1e-1], "steps": RUN_STEPS, "mode": "min", "seed": 0}
    settings["total_steps"] = strategy.total_steps(goal)
    yield Created({**settings, "strategy": json.loads(json.dumps(strategy.to_json()))})
    rates = [float(schedule.multipliers[0]) for schedule in strategy.schedules(goal)]
    points = np.linspace(0, RUN_STEPS, strategy.intervals + 1).astype(int).tolist()
    for round_, (start, stop) in enumerate(pairwise(points), start=1):
        reason = because("runs go on", runs=strategy.runs)
        yield Decided(round_, start, (reason,), {"proposals": strategy.runs}, 0.1)
        for n, rate in enumerate(rates):
            schedule = Schedule([rate] * round_, points[: round_ + 1], RUN_STEPS)
            yield Interval(n, None, start, stop, schedule, round_)
        at = tuple(range(start + 25, stop + 1, 25))
        for n in range(strategy.runs - 5 * (round_ == strategy.intervals)):
            yield Report(n, start, stop, at, {"raw": tuple(1 / (1 + step) + 1e-6 * n for step in at)})


def search_strategy(events: int) -> FixedSchedules:
    """The strategy of that search."""
    return FixedSchedules((Constant(),), runs=events // 10, search="random", intervals=5)


SHAPES = {"population": population, "family": family, "search": search}


def write_study(folder: Path, shape: str, events: int) -> None:
    """A study folder with a journal of so many events."""
    folder.mkdir(parents=True)
    with (folder / "journal.jsonl").open("wb") as file:
        for number, event in zip(range(events), SHAPES[shape](events), strict=False):
            if isinstance(event, Created):
                write_settings(folder, event.settings, 0)
            file.write(write_line(number, event))
