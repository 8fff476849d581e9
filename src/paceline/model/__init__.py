"""What we believe: the trace model and the failure classifier, on one inference engine. torch, float64."""

from paceline.model.failure import FailureModel
from paceline.model.forecast import Forecast
from paceline.model.links import Exponential, Hyperbolic, Linear, Link, Power, Relaxing, Signed
from paceline.model.paths import Draw
from paceline.model.trace_model import TraceModel

__all__ = [
    "Draw",
    "Exponential",
    "FailureModel",
    "Forecast",
    "Hyperbolic",
    "Linear",
    "Link",
    "Power",
    "Relaxing",
    "Signed",
    "TraceModel",
]
