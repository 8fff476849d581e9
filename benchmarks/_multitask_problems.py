"""The two families that multi-task tuning is measured on: how a run is made, and how a schedule is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks import _digit_pairs as pairs
from benchmarks._family import BOUNDS, INTERVALS, STEPS, family, observed
from paceline import Schedule, Trace
from paceline.problems import Quadratic
from paceline.strategy.multitask import Run, Space


@dataclass(frozen=True)
class Problem:
    """A family of tasks.

    Args:
        tasks: their names.
        space: the schedules searched.
        observe: one run of a task under a schedule, of a seed, with a name.
        judge: log of the expected final loss of a schedule.
        best: the lowest known value of it for each task.
    """

    tasks: tuple[str, ...]
    space: Space
    observe: Callable[[str, Schedule, int, str], Trace]
    judge: Callable[[str, Schedule], float]
    best: Callable[[], Mapping[str, float]]


def of_quadratics(problems: dict[str, Quadratic]) -> Problem:
    """Losses in closed form, so that regrets contain no noise of runs."""

    def judge(task: str, schedule: Schedule) -> float:
        return float(np.log(problems[task].expected_loss(schedule)[-1]))

    return Problem(
        tuple(problems),
        Space(BOUNDS, STEPS, INTERVALS),
        lambda task, schedule, seed, name: observed(problems[task], schedule, seed, task=task, name=name),
        judge,
        lambda: {task: judge(task, p.best_schedule(STEPS, INTERVALS, 400)) for task, p in problems.items()},
    )


@cache
def problem_named(name: str) -> Problem:
    if name == "quadratics":
        return of_quadratics(family(5))
    return Problem(
        tuple(pairs.PAIRS),
        pairs.SPACE,
        lambda task, schedule, seed, name: pairs.observed(task, schedule, seed, name=name),
        pairs.expected_log_loss,
        lambda: {task: float(best["log_loss"]) for task, best in pairs.best_known().items()},
    )


PROBLEMS = ("quadratics", "digits")


class Runs:
    """The runs of one method and seed. The noise of a run depends on its number only."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed, self.traces, self.runs = problem, seed, list[Trace](), list[Run]()

    def make(self, run: Run) -> None:
        number = len(self.runs)
        self.runs.append(run)
        schedule = self.problem.space.schedule(run.x)
        self.traces.append(self.problem.observe(run.task, schedule, 10_000 * self.seed + number, str(number)))

    def finals(self, task: str) -> tuple[np.ndarray, np.ndarray]:
        """x and final log losses (mean over the last three observations) of a task's runs."""
        own = [i for i, run in enumerate(self.runs) if run.task == task]
        ends = [float(np.log(self.traces[i].values[-3:]).mean()) for i in own]
        return np.array([self.runs[i].x for i in own]), np.array(ends)

    def best_observed(self) -> dict[str, Schedule]:
        finals = {task: self.finals(task) for task in self.problem.tasks}
        return {task: self.problem.space.schedule(x[y.argmin()]) for task, (x, y) in finals.items()}
