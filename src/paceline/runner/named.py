"""Runners by name, so that a user changes one word; each is imported when it is asked for."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from paceline.errors import InputError
from paceline.runner.base import Factories, Runner

RUNNERS: dict[str, tuple[str, tuple[str, ...]]] = {  # by name: the class, and its settings that a command line has
    "local": ("Local", ()),
    "streams": ("Streams", ("forks",)),
    "ray": ("Ray", ("cpus", "gpus", "address", "storage")),
}


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
    owners = {name: owner for owner, (_, names) in RUNNERS.items() for name in names}
    for name in given:
        if owners[name] != runner:
            raise InputError(
                f"{name} is a setting of the runner {owners[name]}, got it with {runner}: leave one of them out"
            )
    return partial(_class(runner), **given) if given else runner


def _class(runner: str) -> Any:
    if runner not in RUNNERS:
        raise InputError(f"runner must be one of {', '.join(RUNNERS)}, got {runner!r}")
    return getattr(import_module(f"paceline.runner.{runner}"), RUNNERS[runner][0])
