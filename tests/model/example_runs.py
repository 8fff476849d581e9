"""Runs for tests of the trace model."""

from dataclasses import replace

import numpy as np

from paceline import Schedule, Trace
from paceline.problems import SyntheticFamily

STEPS = np.arange(0, 201, 10)
NEW_SCHEDULE = Schedule([1e-2, 3e-3, 2e-2, 1e-3, 5e-3], np.arange(6) * 40)


def decay(rate: float, *, scale: float = 1.0, noise: float = 0.0, seed: int = 0, **fields) -> Trace:
    """A loss that falls faster at larger rates."""
    rng = np.random.default_rng(seed)
    values = scale * (3 * np.exp(-rate * STEPS) + 0.5 + noise * rng.standard_normal(len(STEPS)))
    return Trace(STEPS, values, Schedule.constant(rate, 200), **fields)


def drawn_runs(link: str, count: int, seed: int = 0, intervals: int = 5) -> list[Trace]:
    """Runs drawn from a trace model with this link."""
    rng = np.random.default_rng(seed)
    family = SyntheticFamily.of(link, rng)
    return [family.run(rng.uniform(size=intervals), rng, name=str(i)) for i in range(count)]


def task_runs(task: str, count: int, seed: int = 0, *, shift: float = 0.0, link: str = "linear") -> list[Trace]:
    """Runs of one task of a drawn family; tasks differ by a shift of the latent means."""
    rng = np.random.default_rng([seed, ord(task[0])])
    family = SyntheticFamily.of(link, np.random.default_rng(7))
    family = replace(family, means=tuple(mean + shift for mean in family.means))
    return [replace(family.run(rng.uniform(size=5), rng, name=f"{task}{seed}-{i}"), task=task) for i in range(count)]


def family_runs(tasks: int, count: int = 3, link: str = "linear") -> list[Trace]:
    """Runs of tasks a, b, c, ... of one family."""
    return [run for m in range(tasks) for run in task_runs(chr(97 + m), count, shift=0.3 * m, link=link)]
