"""A made-up family: within an interval at x the loss falls by 1 - 1.5 (x - best)^2, and tasks differ in `best`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from paceline import Objective, Trace, TraceModel, Tuner
from paceline.settings import FamilySettings, NewTaskSettings, SearchBudget
from paceline.strategy import Goal, NewTask
from paceline.strategy.multitask import Family, Space
from paceline.study import Interval
from paceline.traces import LearningRateRange, Schedule

SPACE = Space(LearningRateRange(1e-3, 1.0), steps=60, intervals=3)
BEST = {"slow": 0.2, "middle": 0.5, "fast": 0.8}
GOAL = Goal(SPACE.lr_range, SPACE.steps, Objective(), tasks=tuple(BEST))
FAMILY = Family(GOAL, FamilySettings(intervals=3, dims=2, link="signed", order=1, summed_rate=False, end_share=1.0))
SEARCH = SearchBudget(draws=4, grid=3, sweeps=1, gradient_steps=1)
SMALL = NewTaskSettings(locations=6, models=2, search=SEARCH, alphas=(0.7, 0.3), cold_start=False)
THOROUGH = replace(SMALL, locations=15, search=replace(SEARCH, grid=5))
STEPS = np.arange(0, 61, 4)


def values(schedule: Schedule, best: float, seed: int = 0) -> np.ndarray:
    """At STEPS."""
    x = SPACE.lr_range.to_unit(schedule(np.arange(60)))
    fallen = np.concatenate([[0.0], np.cumsum(1 - 1.5 * (x - best) ** 2) / 20])
    return 5.0 - fallen[STEPS] + 0.005 * np.random.default_rng(seed).standard_normal(len(STEPS))


def run(task: str, best: float, x: Sequence[float], seed: int) -> Trace:
    schedule = SPACE.schedule(x)
    return Trace(STEPS, values(schedule, best, seed), schedule, name=f"{task}{seed}", task=task)


def runs_of_the_family() -> tuple[Trace, ...]:
    x = np.random.default_rng(3).uniform(size=(4, 3))
    return tuple(run(task, best, x[i].tolist(), i) for task, best in BEST.items() for i in range(4))


class NewTaskExample:
    """A new task of the family, and what is known of it."""

    def __init__(self, known_runs: tuple[Trace, ...], model: TraceModel) -> None:
        self.known_runs, self.model = known_runs, model

    def strategy(self, settings: NewTaskSettings = SMALL, task: str = "new", **changes) -> NewTask:
        return NewTask(FAMILY, self.known_runs, self.model, task, replace(settings, **changes))


def report(tuner: Tuner, interval: Interval, best: float, below: float = 0.0) -> None:
    """The values of one interval, all of them lower by a number."""
    own = (interval.start < STEPS) & (interval.stop >= STEPS)
    tuner.tell(interval, STEPS[own].tolist(), (values(interval.schedule, best, interval.fork)[own] - below).tolist())


def run_new_task(
    strategy: NewTask,
    study: Path | None = None,
    *,
    best: float = 0.8,
    most: int = 99,
    cliff: float = 9.0,
    below: float = 0.0,
) -> Tuner:
    """The whole run, or some intervals of it; a rate above the cliff fails in the second interval."""
    tuner = Tuner(lr=SPACE.lr_range, steps=60, strategy=strategy, study=study)
    while most > 0 and (intervals := tuner.ask()) is not None:
        for interval in intervals[:most]:
            most -= 1
            if interval.start == 20 and interval.schedule.multipliers[-1] > cliff:
                tuner.fail(interval, "diverged", [24], [5.0])
            else:
                report(tuner, interval, best, below)
    return tuner
