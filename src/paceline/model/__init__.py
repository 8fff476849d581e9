"""Models of traces: what the next interval, or the whole run, does under a schedule. torch, float64.

`TraceModel` is the paper's model of the next interval, `LawModel` the law of whole runs; both forecast. Other packages
import from here.
"""

from paceline.model.encoder import TraceEncoder
from paceline.model.failure import FailureModel
from paceline.model.forecast import Forecast
from paceline.model.forecaster import Forecaster
from paceline.model.law import LawModel, PlannedSchedule, highest_stable_rate, shortest_warmup, stable_range
from paceline.model.linalg import few_threads, lower_solve, normal_quantile, tensor
from paceline.model.link_names import LINKS, link_of, register_link, registered_name
from paceline.model.links import Exponential, Hyperbolic, Linear, Link, Power, Relaxing, Signed
from paceline.model.location_prior import location_prior_of
from paceline.model.normals import Normals
from paceline.model.paths import Draw, RunState
from paceline.model.preprocess import usable_segments
from paceline.model.quadrature import hermite
from paceline.model.stable_rates import StableRates
from paceline.model.task_embedding import principal_axes
from paceline.model.task_posterior import TaskPosterior
from paceline.model.trace_model import TraceModel

__all__ = [
    "LINKS",
    "Draw",
    "Exponential",
    "FailureModel",
    "Forecast",
    "Forecaster",
    "Hyperbolic",
    "LawModel",
    "Linear",
    "Link",
    "Normals",
    "PlannedSchedule",
    "Power",
    "Relaxing",
    "RunState",
    "Signed",
    "StableRates",
    "TaskPosterior",
    "TraceEncoder",
    "TraceModel",
    "few_threads",
    "hermite",
    "highest_stable_rate",
    "link_of",
    "location_prior_of",
    "lower_solve",
    "normal_quantile",
    "principal_axes",
    "register_link",
    "registered_name",
    "shortest_warmup",
    "stable_range",
    "tensor",
    "usable_segments",
]
