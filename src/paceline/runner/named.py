"""Runners by name, so that a user changes one word; each is imported when it is asked for."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from paceline.errors import InputError
from paceline.runner.base import Factories, Runner

RUNNERS = {"local": "Local", "streams": "Streams", "ray": "Ray"}
SETTINGS = {"local": (), "streams": ("forks",), "ray": ("cpus", "gpus", "address", "storage")}  # of a command line


def make_runner(runner: "str | Callable[[Factories], Runner]", make_training: Factories) -> Runner:
    """The runner of this name, or what a callable makes of the training's factory."""
    if not isinstance(runner, str):
        made: Any = runner(make_training)
        if not isinstance(made, Runner):
            raise InputError(f"runner must make a Runner, got {made!r}: pass a name or partial(Ray, gpus=0.5)")
        return made
    return _class(runner)(make_training)


def with_settings(runner: str, **settings: Any) -> "str | Callable[[Factories], Runner]":
    """What `make_runner` takes for a runner with settings: None leaves one to it, and others must be its own."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in SETTINGS.get(runner, ()):
            owner = next(other for other, names in SETTINGS.items() if name in names)
            raise InputError(f"{name} is a setting of the runner {owner}, got it with {runner}: leave one of them out")
    return partial(_class(runner), **given) if given else runner


def _class(runner: str) -> Any:
    if runner not in RUNNERS:
        raise InputError(f"runner must be one of {', '.join(RUNNERS)}, got {runner!r}")
    return getattr(import_module(f"paceline.runner.{runner}"), RUNNERS[runner])
