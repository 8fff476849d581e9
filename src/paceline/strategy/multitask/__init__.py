"""Schedules for a family of tasks (paper, section 4, Algorithm 2): what to run next, and the best schedule for each."""

from paceline.strategy.multitask.best_schedules import best_schedules
from paceline.strategy.multitask.criterion import Criterion, LinearCriterion
from paceline.strategy.multitask.family import ANSWER_QUANTILES, Answer, Family
from paceline.strategy.multitask.family_details import embedding_details
from paceline.strategy.multitask.infill import InfillChoice, next_run
from paceline.strategy.multitask.multi_task import MultiTask
from paceline.strategy.multitask.safe_rates import SafeRates
from paceline.strategy.multitask.space import Run, Space, as_floats, initial_runs

__all__ = [
    "ANSWER_QUANTILES",
    "Answer",
    "Criterion",
    "Family",
    "InfillChoice",
    "LinearCriterion",
    "MultiTask",
    "Run",
    "SafeRates",
    "Space",
    "as_floats",
    "best_schedules",
    "embedding_details",
    "initial_runs",
    "next_run",
]
