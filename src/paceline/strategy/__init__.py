"""What to try: strategies are functions of the history, without state, files or clocks."""

from paceline.strategy.base import Decision, Fork, Goal, History, Interval, Strategy
from paceline.strategy.choose import Blind, ByModel
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.fixed_schedules import FixedSchedules
from paceline.strategy.multitask import Family, MultiTask
from paceline.strategy.newtask import NewTask
from paceline.strategy.plan import Plan, Rung, greedy_plan, horizon_plan
from paceline.strategy.single import Order, SinglePace
from paceline.strategy.single_run import SingleRun, horizon

__all__ = [
    "Blind",
    "ByModel",
    "Decision",
    "Dynamic",
    "Family",
    "FixedSchedules",
    "Fork",
    "Goal",
    "History",
    "Interval",
    "MultiTask",
    "NewTask",
    "Order",
    "Plan",
    "Rung",
    "SinglePace",
    "SingleRun",
    "Strategy",
    "greedy_plan",
    "horizon",
    "horizon_plan",
]
