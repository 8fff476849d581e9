"""The answers of a family of tasks, read from the details of its decisions. Nothing is fitted here.

Each function reads the decisions before event `end`, and of these the latest `most`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from paceline.study.state import StudyState
from paceline.traces import Schedule


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The schedule for a task, and what is expected of it, in the user's units.

    Args:
        task: its name.
        schedule: what to run.
        median: forecast of the final value.
        low, high: the 90 % band of it, smaller and larger.
        runs: how many runs of the task were made, those known beforehand included.
        failed: how many of them failed.
    """

    task: str
    schedule: Schedule
    median: float
    low: float
    high: float
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class BestRun:
    """The best run of a task that was made: its number, schedule, and the mean of its last values."""

    task: str
    fork: int
    schedule: Schedule
    value: float


def answers_in(state: StudyState, end: int | None = None, most: int | None = None) -> dict[str, TaskAnswer]:
    """The answer for each task; empty until the study is over."""
    return {row["task"]: _answer(row) for row in state.latest_detail("answers", end, most)}


def _answer(row: dict[str, Any]) -> TaskAnswer:
    schedule = Schedule.from_json(row["schedule"])
    return TaskAnswer(row["task"], schedule, row["median"], row["low"], row["high"], row["runs"], row["failed"])


def best_in(state: StudyState, end: int | None = None, most: int | None = None) -> dict[str, BestRun]:
    """The best run of each task that has one, as of the latest decision."""

    def best_run(row: dict[str, Any]) -> BestRun:
        schedule = state.latest_interval(state.forks[row["fork"]]).schedule
        return BestRun(row["task"], row["fork"], schedule, row["value"])

    return {row["task"]: best_run(row) for row in state.latest_detail("best", end, most)}


def embedding_in(
    state: StudyState, end: int | None = None, most: int | None = None
) -> dict[str, Float[np.ndarray, "dims"]]:
    """Where the latest model placed each task."""
    return {row["task"]: np.array(row["at"], dtype=float) for row in state.latest_detail("embedding", end, most)}
