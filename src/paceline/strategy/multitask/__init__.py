"""Schedules for a family of tasks (paper, section 4, Algorithm 2): what to run next, and the best schedule for each."""

from paceline.strategy.multitask.criterion import Criterion
from paceline.strategy.multitask.family import Answer, Family
from paceline.strategy.multitask.infill import Choice, Effort, next_run
from paceline.strategy.multitask.optimistic import best_schedules
from paceline.strategy.multitask.space import Run, Space, first_runs
from paceline.strategy.multitask.strategy import MultiTask

__all__ = [
    "Answer",
    "Choice",
    "Criterion",
    "Effort",
    "Family",
    "MultiTask",
    "Run",
    "Space",
    "best_schedules",
    "first_runs",
    "next_run",
]
