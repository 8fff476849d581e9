"""Observations: schedules, traces, and the intervals that a model is fitted to. numpy only.

Other packages import from here. Base shapes are in `paceline.shapes`.
"""

from paceline.traces.clock import Clock, ClockName
from paceline.traces.divergence import ended_worse, has_diverged, is_absurd, lies_far_above
from paceline.traces.lr_range import LearningRateRange
from paceline.traces.objective import Mode, Objective, Transform, Weights
from paceline.traces.scaling import Scaling
from paceline.traces.schedule import Schedule
from paceline.traces.segments import Intervals, Moments, Segment, Segmenter
from paceline.traces.task_coordinates import Coordinates, TaskCoordinates, check_coordinates
from paceline.traces.trace import Trace, is_sound

__all__ = [
    "Clock",
    "ClockName",
    "Coordinates",
    "Intervals",
    "LearningRateRange",
    "Mode",
    "Moments",
    "Objective",
    "Scaling",
    "Schedule",
    "Segment",
    "Segmenter",
    "TaskCoordinates",
    "Trace",
    "Transform",
    "Weights",
    "check_coordinates",
    "ended_worse",
    "has_diverged",
    "is_absurd",
    "is_sound",
    "lies_far_above",
]
