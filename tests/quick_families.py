"""Families of small quadratics, and settings that make their decisions quick, for tests of all that runs families."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from paceline import Study, Tuner, tune_tasks
from paceline.problems import Quadratic, QuadraticTraining
from paceline.settings import FamilySettings, InfillBudget, SearchBudget
from paceline.strategy import MultiTask
from paceline.study import Created, Decided, Interval, read_journal

BOUNDS, STEPS, EVERY = (0.01, 1.5), 60, 4
SEARCH = SearchBudget(draws=8, grid=3, sweeps=1, gradient_steps=2)
INFILL = InfillBudget(candidates=8, starts=1, gradient_steps=1, rough_draws=4, outer_draws=4, inner_draws=4)
QUICK: dict[str, Any] = {"intervals": 3, "dims": 1, "link": "linear", "search": SEARCH, "infill_search": INFILL}
QUICK_NEW_TASK: dict[str, Any] = {
    "locations": 6,
    "models": 2,
    "search": SearchBudget(draws=4, grid=3, sweeps=1, gradient_steps=1),
}


def quadratic(noise: float, *, seed: int = 3) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), seed, every=EVERY)


class Diverging(QuadraticTraining):
    """A training whose values are not finite after some steps."""

    def __init__(self, after: int) -> None:
        super().__init__(Quadratic(dims=20), every=EVERY)
        self.after = after

    def advance(self, schedule, stop) -> Iterator:
        for step, values in super().advance(schedule, stop):
            yield step, values if step < self.after else {"raw": float("nan"), "averaged": float("nan")}


NOISES = {"calm": 0.2, "rough": 1.0, "wild": 2.0}
TASKS = {name: partial(quadratic, noise) for name, noise in NOISES.items()}


def tune_quickly(**settings) -> Study:
    """A whole family of few runs."""
    tasks = settings.pop("tasks", TASKS)
    return tune_tasks(tasks, steps=STEPS, lr=BOUNDS, **{**QUICK, "budget": 5, **settings})


def quick_tuner(study: Path | None = None, **settings) -> Tuner:
    """The same, to be run by hand."""
    tasks = settings.pop("tasks", list(NOISES))
    strategy = MultiTask(FamilySettings(**{**QUICK, "budget": 4, "initial": 3, "batch": 2, **settings}))
    return Tuner(lr=BOUNDS, steps=STEPS, strategy=strategy, tasks=tasks, study=study)


def report(tuner: Tuner, interval: Interval) -> None:
    """Train one run, and report what it showed."""
    training = quadratic(NOISES[tuner.task_of(interval)], seed=interval.fork)
    seen = list(training.advance(interval.schedule, interval.stop))
    values = {weights: [value[weights] for _, value in seen] for weights in ("raw", "averaged")}
    tuner.tell(interval, [step for step, _ in seen], values)


def run_by_hand(tuner: Tuner) -> Tuner:
    """To the end."""
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            report(tuner, interval)
    return tuner


def facts(path: Path) -> list[str]:
    """What a study decided and observed, without how long it took."""
    events = [e for e in read_journal(path / "journal.jsonl") if not isinstance(e, Created)]
    return sorted(repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in events)
