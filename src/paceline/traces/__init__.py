"""What was observed: schedules, traces, and the intervals a model is fitted to. numpy only."""

from paceline.traces.lr_range import LearningRateRange
from paceline.traces.objective import Objective
from paceline.traces.scaling import Scaling
from paceline.traces.schedule import Schedule
from paceline.traces.segments import Clock, Cutting, Moments, Segment
from paceline.traces.shapes import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    OneCycle,
    Recorded,
    Shape,
    WarmupStableDecay,
)
from paceline.traces.trace import Trace

__all__ = [
    "Clock",
    "Constant",
    "Cosine",
    "Cutting",
    "Exponential",
    "LearningRateRange",
    "Linear",
    "Moments",
    "Objective",
    "OneCycle",
    "Recorded",
    "Scaling",
    "Schedule",
    "Segment",
    "Shape",
    "Trace",
    "WarmupStableDecay",
]
