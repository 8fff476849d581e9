"""The training factory that a command line names: `module:factory`, importable from the current folder."""

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
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"expected module:factory, got {name!r}: write train:make for the function `make` in train.py")
    module = _imported(module_name)
    try:
        factory = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        known = [n for n, value in inspect.getmembers(module, inspect.isfunction) if value.__module__ == module_name]
        offers = f"it defines {', '.join(known)}" if known else "it defines no function"
        raise InputError(f"module {module_name!r} has no {attribute!r}: {offers}") from error
    if not callable(factory):
        raise InputError(
            f"{name} is a {type(factory).__name__}, not a function: name a function that is called with nothing and "
            "returns a training"
        )
    return factory


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
