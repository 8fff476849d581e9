"""What a command line names, importable from the current folder: the factory of a training, or those of a family."""

import inspect
import sys
import traceback
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from paceline.errors import InputError


def load_factory(name: str) -> Callable[[], Any]:
    """The function behind `module:factory`."""
    factory = _named(name, "factory", "make")
    if not callable(factory):
        raise InputError(
            f"{name} is a {type(factory).__name__}, not a function: name a function that is called with nothing and "
            "returns a training"
        )
    return factory


def load_tasks(name: str) -> dict[str, Callable[[], Any]]:
    """The factories behind `module:tasks`, by the names of their tasks: a dict, or a function that returns one."""
    found = _named(name, "tasks", "tasks")
    if callable(found):
        try:
            found = found()
        except Exception as error:
            raise InputError(f"{name} raised {type(error).__name__}: {error}{where(error)}") from error
    expected = "a dict of names and functions that each return a training, or a function that returns such a dict"
    if not isinstance(found, dict) or not found:
        raise InputError(f"{name}: expected {expected}, got {found!r}")
    for task, factory in found.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(task, str) or not callable(factory):  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(f"{name}: expected {expected}, got {task!r}: {factory!r} in it")
    return found  # pyright: ignore[reportUnknownVariableType]


def _named(name: str, kind: str, example: str) -> Any:
    """What `module:attribute` names."""
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"expected module:{kind}, got {name!r}: write train:{example} for `{example}` in train.py")
    module = _imported(module_name)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        known = [n for n, value in inspect.getmembers(module, inspect.isfunction) if value.__module__ == module_name]
        offers = f"it defines {', '.join(known)}" if known else "it defines no function"
        raise InputError(f"module {module_name!r} has no {attribute!r}: {offers}") from error


def _imported(name: str) -> Any:
    """The module, with the current folder searched first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module {name!r}, neither in this folder ({here}) nor installed: check the name, and give it "
                "without .py"
            ) from error
        raise InputError(f"importing {name!r} failed{where(error)}: {error}") from error
    except Exception as error:
        raise InputError(f"importing {name!r} failed{where(error)}: {type(error).__name__}: {error}") from error


def where(error: BaseException) -> str:
    """File and line that an error of the user's code comes from: " at train.py, line 12"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    return f" at {frames[-1].filename}, line {frames[-1].lineno}" if len(frames) > 1 else ""
