"""Runs of three tasks that are drawn from the model itself, and a family of them with a quick search."""

from dataclasses import replace

import numpy as np

from paceline import Objective, Trace
from paceline.problems import SyntheticFamily
from paceline.settings import FamilySettings, InfillBudget, SearchBudget
from paceline.strategy import Goal
from paceline.strategy.multitask import Family, Space
from paceline.traces import LearningRateRange

BOUNDS = LearningRateRange(1e-4, 1e-1)
TASKS = ("a", "b", "c")
SPACE = Space(BOUNDS, steps=200, intervals=5)
SEARCH = SearchBudget(draws=16, grid=5, sweeps=1, gradient_steps=20)
INFILL = InfillBudget(candidates=16, starts=1, gradient_steps=2, rough_draws=4, outer_draws=8, inner_draws=4)


def drawn_runs(count: int, link: str = "linear", tasks: tuple[str, ...] = TASKS) -> list[Trace]:
    """So many runs of each task."""
    family, runs = SyntheticFamily.of(link, np.random.default_rng(7)), list[Trace]()
    for m, task in enumerate(tasks):
        own = replace(family, means=tuple(mean + 0.3 * m for mean in family.means))
        for i in range(count):
            rng = np.random.default_rng([m, i])
            runs.append(replace(own.run(rng.uniform(size=5), rng, name=f"{task}{i}"), task=task))
    return runs


def drawn_family(link: str = "linear", tasks: tuple[str, ...] = TASKS, **settings) -> Family:
    goal = Goal(BOUNDS, 200, Objective(), tasks=tasks)
    return Family(goal, FamilySettings(**{"link": link, "search": SEARCH, "infill_search": INFILL, **settings}))
