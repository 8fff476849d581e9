"""A new task of a known family (paper, section 4.4): universal schedule, informative beginning, dynamic tuning."""

from paceline.strategy.newtask.mixture import Mixture, share_due_to_place
from paceline.strategy.newtask.strategy import NewTask, Thought, whole_intervals

__all__ = ["Mixture", "NewTask", "Thought", "share_due_to_place", "whole_intervals"]
