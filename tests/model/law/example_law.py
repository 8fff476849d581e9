"""A law with known parameters, and runs that follow it."""

from typing import Any

import numpy as np

from paceline import Schedule, Trace
from tests import reference

STEPS, EVERY = 1000, 20
LARGEST, REFERENCE = 30.0, 0.1  # units of this law
SPEEDS = np.array([8.0, 60.0]) / LARGEST
LOWEST_RATE, HIGHEST_RATE = 0.003, 0.1


def loss(schedule: Schedule, steps: np.ndarray) -> np.ndarray:
    """0.5 + 0.6 ((S + 0.2) / 30)^-0.4 + noise that takes a while to anneal."""
    s, n = reference.state_of_a_run(schedule, steps, 0.9, REFERENCE, SPEEDS)
    return 0.5 + 0.6 * ((s + 0.2) / LARGEST) ** -0.4 + n @ np.array([0.3, 0.2, 0.1])


def run(schedule: Schedule, *, noise: float = 0.01, seed: int = 0, until: int | None = None, **fields: Any) -> Trace:
    """Observations of a run with relative noise."""
    steps = np.arange(EVERY, (until or schedule.steps) + 1, EVERY)
    factor = np.exp(noise * np.random.default_rng(seed).standard_normal(len(steps)))
    return Trace(steps, loss(schedule, steps) * factor, schedule, **fields)


def runs(count: int = 4, **fields: Any) -> list[Trace]:
    """Runs at different rates that fall in the second half, the first of them by more than the last."""
    examples = []
    for i, rate in enumerate(np.geomspace(LOWEST_RATE, HIGHEST_RATE, count)):
        schedule = Schedule([rate, rate * (0.1 + 0.4 * i / count)], [0, 600, STEPS])
        examples.append(run(schedule, seed=i, name=str(i), **fields))
    return examples
