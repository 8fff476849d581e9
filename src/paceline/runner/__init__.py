"""Running all forks of a study: a runner trains intervals and returns reports.

`Streams` and `Ray` are imported only when they are used: Ray is optional, and slow to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paceline.runner.base import Factories, Runner, by_task
from paceline.runner.fingerprint import Fingerprint, fingerprint_of_factory
from paceline.runner.local import Local, build, load_into
from paceline.runner.named import RUNNERS, make_runner, with_settings
from paceline.runner.stopwatch import Stopwatch
from paceline.runner.user_errors import (
    is_mistake,
    is_regardless_of_rate,
    is_transient,
    users_traceback,
    without_variables,
)

if TYPE_CHECKING:
    from paceline.runner.ray import Ray as Ray
    from paceline.runner.streams import Streams as Streams

_LAZY = {"Ray": "ray", "Streams": "streams"}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_LAZY,
    "RUNNERS",
    "Factories",
    "Fingerprint",
    "Local",
    "Runner",
    "Stopwatch",
    "build",
    "by_task",
    "fingerprint_of_factory",
    "is_mistake",
    "is_regardless_of_rate",
    "is_transient",
    "load_into",
    "make_runner",
    "users_traceback",
    "with_settings",
    "without_variables",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'paceline.runner' has no attribute {name!r}")
    return getattr(import_module(f"paceline.runner.{_LAZY[name]}"), name)
