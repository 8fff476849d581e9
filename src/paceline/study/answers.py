"""What a family of tasks came to, read from the details of its decisions: nothing is fitted here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from paceline.study.events import Decided, Event, Proposed
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


def _last(events: Sequence[Event], field: str) -> list[dict[str, Any]]:
    """This detail of the latest decision that has it."""
    for event in reversed(events):
        if isinstance(event, Decided) and field in event.details:
            return event.details[field]
    return []


def answers_in(events: Sequence[Event]) -> dict[str, TaskAnswer]:
    """The answer for each task; empty while the study is not over."""
    found: dict[str, TaskAnswer] = {}
    for a in _last(events, "answers"):
        schedule = Schedule.from_json(a["schedule"])
        found[a["task"]] = TaskAnswer(a["task"], schedule, a["median"], a["low"], a["high"], a["runs"], a["failed"])
    return found


def best_in(events: Sequence[Event]) -> dict[str, BestRun]:
    """The best run of each task that has one, as of the latest decision."""
    schedules = {e.fork: e.schedule for e in events if isinstance(e, Proposed)}
    return {b["task"]: BestRun(b["task"], b["fork"], schedules[b["fork"]], b["value"]) for b in _last(events, "best")}


def embedding_in(events: Sequence[Event]) -> dict[str, Float[np.ndarray, "dims"]]:
    """Where the latest model saw each task."""
    return {e["task"]: np.array(e["at"], dtype=float) for e in _last(events, "embedding")}
