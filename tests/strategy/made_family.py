"""A made-up family: within an interval at x the loss falls by 1 - 1.5 (x - best)^2, and tasks differ in `best`."""

from collections.abc import Sequence

import numpy as np

from paceline import Trace
from paceline.strategy.multitask import Family, Space
from paceline.strategy.newtask import Thought
from paceline.traces import LearningRateRange, Schedule

SPACE = Space(LearningRateRange(1e-3, 1.0), steps=60, intervals=3)
BEST = {"slow": 0.2, "middle": 0.5, "fast": 0.8}
FAMILY = Family(SPACE, tuple(BEST), dims=2, link="signed", order=1, progress=False)
SMALL = Thought(places=6, models=2, draws=4, grid=3, sweeps=1, climbs=1)
STEPS = np.arange(0, 61, 4)


def values(schedule: Schedule, best: float, seed: int = 0) -> np.ndarray:
    """At STEPS."""
    x = SPACE.lr_range.to_unit(schedule(np.arange(60)))
    fallen = np.concatenate([[0.0], np.cumsum(1 - 1.5 * (x - best) ** 2) / 20])
    return 5.0 - fallen[STEPS] + 0.005 * np.random.default_rng(seed).standard_normal(len(STEPS))


def run(task: str, best: float, x: Sequence[float], seed: int) -> Trace:
    schedule = SPACE.schedule(x)
    return Trace(STEPS, values(schedule, best, seed), schedule, name=f"{task}{seed}", task=task)


def known_runs() -> tuple[Trace, ...]:
    x = np.random.default_rng(3).uniform(size=(4, 3))
    return tuple(run(task, best, x[i].tolist(), i) for task, best in BEST.items() for i in range(4))
