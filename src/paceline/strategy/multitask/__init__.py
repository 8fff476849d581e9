"""Schedules for a family of tasks (paper, section 4, Algorithm 2): what to run next, and the best schedule for each."""

from paceline.strategy.multitask.best_schedules import best_schedules
from paceline.strategy.multitask.criterion import Criterion, LinearCriterion
from paceline.strategy.multitask.details import embedding_details
from paceline.strategy.multitask.family import Answer, Family
from paceline.strategy.multitask.infill import Choice, next_run
from paceline.strategy.multitask.space import Run, Space, as_floats, initial_runs
from paceline.strategy.multitask.strategy import MultiTask

__all__ = [
    "Answer",
    "Choice",
    "Criterion",
    "Family",
    "LinearCriterion",
    "MultiTask",
    "Run",
    "Space",
    "as_floats",
    "best_schedules",
    "embedding_details",
    "initial_runs",
    "next_run",
]
