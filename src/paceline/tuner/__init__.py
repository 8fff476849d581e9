"""The one loop, by hand with ask and tell (`Tuner`) or driven by a runner (`tune`, `tune_tasks`, `warm_start`)."""

from paceline.tuner.drive import tune
from paceline.tuner.families import load_family, read_known_runs
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result
from paceline.tuner.tasks import tune_tasks, with_known_runs
from paceline.tuner.warm import plan_task, warm_start

__all__ = [
    "Result",
    "Tuner",
    "load_family",
    "plan_task",
    "read_known_runs",
    "tune",
    "tune_tasks",
    "warm_start",
    "with_known_runs",
]
