"""The law: what a learning-rate schedule does to a loss, as a mean function with a state (docs/design.md)."""

from paceline.model.law.model import LawModel
from paceline.model.law.plan import PlannedSchedule, highest_stable_rate, shortest_warmup, stable_range

__all__ = ["LawModel", "PlannedSchedule", "highest_stable_rate", "shortest_warmup", "stable_range"]
