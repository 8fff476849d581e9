"""The law: what a learning-rate schedule does to a loss, as a mean function with a state (docs/design.md)."""

from paceline.model.law.model import Caveat, LawModel
from paceline.model.law.plan import PlannedSchedule
from paceline.model.law.stability import highest_stable_rate, shortest_warmup, stable_range

__all__ = ["Caveat", "LawModel", "PlannedSchedule", "highest_stable_rate", "shortest_warmup", "stable_range"]
