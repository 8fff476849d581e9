"""Families with one task left out, and the run of that task: as it is, or changed so that it is unlike its family.

Noisy quadratics as in `benchmarks.new_task`, and pairs of digits. Algorithm 2 (`infill="optimistic"`) makes the runs of
the tasks that are not left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks import _digit_pairs as pairs
from benchmarks._family import BOUNDS, EVERY, INTERVALS, family, observed
from paceline import Schedule, Trace
from paceline.problems import QuadraticTraining
from paceline.settings import FamilySettings
from paceline.strategy import Goal
from paceline.strategy.multitask import Family, Run, Space
from paceline.traces import Objective

PIECES = 20  # of the best schedule of a quadratic
CHANGES = ("rates ten times higher", "rates ten times lower", "another loss")


@dataclass(frozen=True)
class LeftOut:
    """A family and how a task that it leaves out is run and judged.

    Args:
        tasks: all names.
        space: the schedules searched.
        runs: known runs of the others, in all.
        batch: runs at a time.
        observe: a known run: task, schedule, seed, name.
        train: a training of a task with a seed; observed before its first step if a family knows such runs.
        judge: log of the expected final loss of a schedule, over that of the best.
    """

    tasks: tuple[str, ...]
    space: Space
    runs: int
    batch: int
    observe: Callable[[str, Schedule, int, str], Trace]
    train: Callable[[str, int], Any]
    judge: Callable[[str, Schedule], float]


class ObservedFromStart(QuadraticTraining):
    """A run that is also observed before its first step, like those of the family."""

    def advance(self, schedule: Any, stop: int) -> Iterator[Any]:
        if self.steps_done == 0:
            loss = self.problem.loss(self.theta)
            yield 0, {"raw": loss, "averaged": loss}
        yield from super().advance(schedule, stop)


@cache
def quadratics() -> LeftOut:
    """Eight noisy quadratics, runs of 1,000 steps."""
    problems, space = family(8), Space(BOUNDS, 1000, INTERVALS)

    @cache
    def best(task: str) -> float:
        problem = problems[task]
        return float(problem.expected_loss(problem.best_schedule(space.steps, PIECES, 400))[-1])

    return LeftOut(
        tuple(problems),
        space,
        56,
        7,
        lambda task, schedule, seed, name: observed(problems[task], schedule, seed, task=task, name=name),
        lambda task, seed: ObservedFromStart(problems[task], seed, every=EVERY),
        lambda task, schedule: float(np.log(problems[task].expected_loss(schedule)[-1] / best(task))),
    )


@cache
def digits() -> LeftOut:
    """Five pairs of digits, runs of 300 steps."""
    return LeftOut(
        tuple(pairs.PAIRS),
        pairs.SPACE,
        28,
        4,
        lambda task, schedule, seed, name: pairs.observed(task, schedule, seed, name=name),
        pairs.PairTraining,
        lambda task, schedule: pairs.expected_log_loss(task, schedule) - float(pairs.best_known()[task]["log_loss"]),
    )


FAMILIES: dict[str, Callable[[], LeftOut]] = {"quadratics": quadratics, "digits": digits}


def known_runs(problem: LeftOut, left_out: str, seed: int) -> tuple[Family, list[Trace]]:
    """The runs of all tasks but one that Algorithm 2 chooses, with its settings."""
    tasks = tuple(task for task in problem.tasks if task != left_out)
    goal = Goal(problem.space.lr_range, problem.space.steps, Objective(), seed, tasks)
    plan, traces = Family(goal, FamilySettings(intervals=INTERVALS, infill="optimistic")), list[Trace]()

    def make(run: Run) -> None:
        number = len(traces)
        traces.append(problem.observe(run.task, problem.space.schedule(run.x), 10_000 * seed + number, str(number)))

    for run in plan.initial_runs():
        make(run)
    while len(traces) < problem.runs:
        for choice in plan.propose(plan.fit(traces), traces, count=problem.batch):
            make(choice.run)
    return plan, traces


@dataclass
class Changed:
    """A training whose rates count for more or less than it is told, or whose loss is another.

    Args:
        inner: the training.
        factor: of the rates.
        is_other_loss: whether three times the loss plus one is observed.
    """

    inner: Any
    factor: float = 1.0
    is_other_loss: bool = False

    def advance(self, schedule: Callable[[Any], Any], stop: int) -> Iterator[Any]:
        """Train on to step `stop`."""
        for step, values in self.inner.advance(lambda steps: self.factor * schedule(steps), stop):
            yield step, {k: 3 * v + 1 for k, v in values.items()} if self.is_other_loss else values

    def state_dict(self) -> dict[str, Any]:
        """The inner state."""
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.inner.load_state_dict(state)

    def reseed(self, seed: int) -> None:
        """Draw other noise from now on."""
        self.inner.reseed(seed)


def new_training(problem: LeftOut, task: str, seed: int, change: str = "") -> Any:
    """A training of the task that is left out, as it is or changed."""
    training = Changed(problem.train(task, 1_000_000 + seed))
    factor = {CHANGES[0]: 0.1, CHANGES[1]: 10.0}.get(change, 1.0)
    return replace(training, factor=factor, is_other_loss=change == CHANGES[2])


def factory(problem: LeftOut, task: str, seed: int, change: str = "") -> Callable[[], Any]:
    """What makes such trainings."""
    return partial(new_training, problem, task, seed, change)
