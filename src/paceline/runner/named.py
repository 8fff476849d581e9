"""Runners by name, so that a user changes one word; each is imported when it is asked for."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from paceline.errors import InputError
from paceline.runner.base import Runner
from paceline.training import Training

RUNNERS = {"local": "Local", "streams": "Streams", "ray": "Ray"}


def make_runner(
    runner: "str | Callable[[Callable[[], Training]], Runner]", make_training: Callable[[], Training]
) -> Runner:
    """The runner of this name, or what a callable makes of the training's factory."""
    if not isinstance(runner, str):
        made: Any = runner(make_training)
        if not isinstance(made, Runner):
            raise InputError(f"runner must make a Runner, got {made!r}: pass a name or partial(Ray, gpus=0.5)")
        return made
    if runner not in RUNNERS:
        raise InputError(f"runner must be one of {', '.join(RUNNERS)}, got {runner!r}")
    return getattr(import_module(f"paceline.runner.{runner}"), RUNNERS[runner])(make_training)
