"""What to try: strategies are functions of the history, without state, files or clocks."""

from paceline.strategy.base import Decision, Fork, Goal, History, Keep, Strategy
from paceline.strategy.default import default_strategy
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.final_forecast import FinalForecast
from paceline.strategy.fixed_schedules import FixedSchedules
from paceline.strategy.fork_plan import ForkPlan, Rung, greedy_plan, horizon_plan
from paceline.strategy.multitask import Answer, Family, MultiTask
from paceline.strategy.newtask import NewTask
from paceline.strategy.rate_choosers import FixedFactor, ModelQuantile
from paceline.strategy.rollback import steps_taken
from paceline.strategy.single_run import SINGLE_RUN, SingleRun, SingleRunController, WeightAction
from paceline.strategy.turned_runs import with_early_end

__all__ = [
    "SINGLE_RUN",
    "Answer",
    "Decision",
    "Dynamic",
    "Family",
    "FinalForecast",
    "FixedFactor",
    "FixedSchedules",
    "Fork",
    "ForkPlan",
    "Goal",
    "History",
    "Keep",
    "ModelQuantile",
    "MultiTask",
    "NewTask",
    "Rung",
    "SingleRun",
    "SingleRunController",
    "Strategy",
    "WeightAction",
    "default_strategy",
    "greedy_plan",
    "horizon_plan",
    "steps_taken",
    "with_early_end",
]
