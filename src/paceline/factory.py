"""Load what a command line names: the factory of a training, or the factories of a family of tasks.

Modules are searched in the current folder first, then among those that are installed.
"""

import inspect
import sys
import traceback
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from paceline.errors import InputError

TASKS_TYPE = "a dict of names and functions that each return a training, or a function that returns such a dict"


def load_factory(name: str) -> Callable[[], Any]:
    """The function that `module:factory` names."""
    factory = _load(name, "factory", example="make")
    if not callable(factory):
        raise InputError(
            f"{name} is a {type(factory).__name__}, not a function: name a function without arguments that returns a "
            "training"
        )
    return factory


def load_tasks(name: str) -> dict[str, Callable[[], Any]]:
    """The factories that `module:tasks` names, by task. It names a dict, or a function that returns one."""
    tasks = _load(name, "tasks", example="tasks")
    if callable(tasks):
        try:
            tasks = tasks()
        except Exception as error:
            raise InputError(f"{name} raised {type(error).__name__}: {error}{error_place(error)}") from error
    if not isinstance(tasks, dict) or not tasks:
        raise InputError(f"{name}: expected {TASKS_TYPE}, got {tasks!r}")
    for task, factory in tasks.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(task, str) or not callable(factory):  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(f"{name}: expected {TASKS_TYPE}, got {task!r}: {factory!r} in it")
    return tasks  # pyright: ignore[reportUnknownVariableType]


def error_place(error: BaseException) -> str:
    """Where in the user's code an error comes from: " at train.py, line 12". Empty if that is not known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    return f" at {frames[-1].filename}, line {frames[-1].lineno}" if len(frames) > 1 else ""


def _load(name: str, kind: str, *, example: str) -> Any:
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"expected module:{kind}, got {name!r}: write train:{example} for `{example}` in train.py")
    module = _import(module_name)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        functions = inspect.getmembers(module, inspect.isfunction)
        own = [function for function, value in functions if value.__module__ == module_name]
        offers = f"it defines {', '.join(own)}" if own else "it defines no function"
        raise InputError(f"module {module_name!r} has no {attribute!r}: {offers}") from error


def _import(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module {name!r}, neither in this folder ({folder}) nor installed: check the name, and write it "
                "without .py"
            ) from error
        raise InputError(f"importing {name!r} failed{error_place(error)}: {error}") from error
    except Exception as error:
        raise InputError(f"importing {name!r} failed{error_place(error)}: {type(error).__name__}: {error}") from error
