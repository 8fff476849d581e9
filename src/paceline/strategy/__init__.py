"""What to try: strategies are functions of the history, without state, files or clocks."""

from paceline.strategy.base import Decision, Fork, Goal, History, Proposal, Strategy
from paceline.strategy.baselines import AutoLRS, FixedSchedules, PopulationBasedBandits, PopulationBasedTraining
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.plan import Plan, Rung, greedy_plan, horizon_plan

__all__ = [
    "AutoLRS",
    "Decision",
    "Dynamic",
    "FixedSchedules",
    "Fork",
    "Goal",
    "History",
    "Plan",
    "PopulationBasedBandits",
    "PopulationBasedTraining",
    "Proposal",
    "Rung",
    "Strategy",
    "greedy_plan",
    "horizon_plan",
]
