"""A new task of a known family (paper, section 4.4): universal schedule, informative beginning, dynamic tuning."""

from paceline.strategy.newtask.ensemble import TaskEnsemble, location_share
from paceline.strategy.newtask.new_task import NewTask

__all__ = ["NewTask", "TaskEnsemble", "location_share"]
