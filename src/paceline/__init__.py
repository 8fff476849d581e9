"""Paceline tunes the learning rate of gradient-based training with Bayesian optimisation.

`import paceline` is light and changes nothing outside itself: parts are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.errors import InputError as InputError
    from paceline.errors import PacelineError as PacelineError
    from paceline.integrations import PaceLR as PaceLR
    from paceline.model import TraceModel as TraceModel
    from paceline.strategy import Dynamic as Dynamic
    from paceline.study import Study as Study
    from paceline.traces import LearningRateRange as LearningRateRange
    from paceline.traces import Objective as Objective
    from paceline.traces import Schedule as Schedule
    from paceline.traces import Trace as Trace
    from paceline.training import TorchTraining as TorchTraining
    from paceline.tuner import Tuner as Tuner
    from paceline.tuner import tune as tune
    from paceline.tuner import tune_tasks as tune_tasks
    from paceline.tuner import warm_start as warm_start

__version__ = "0.2.0.dev0"

_HOME = {
    "Dynamic": "strategy",
    "InputError": "errors",
    "LearningRateRange": "traces",
    "Objective": "traces",
    "PaceLR": "integrations",
    "PacelineError": "errors",
    "Schedule": "traces",
    "Study": "study",
    "TorchTraining": "training",
    "Trace": "traces",
    "TraceModel": "model",
    "Tuner": "tuner",
    "tune": "tuner",
    "tune_tasks": "tuner",
    "warm_start": "tuner",
}

__all__ = [*_HOME, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}: it offers {', '.join(sorted(_HOME))}")
    return getattr(import_module(f"paceline.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
