"""What a training consists of, in a few short texts, so that a study that is called again can tell what has changed.

A state that does not fit is an error anyway. All else that changes between two calls would pass in silence: another
weight decay, another loss, another split of the data. So the names of settings are kept with their values, the code of
the factory and of the user's functions and classes that it uses with a digest, and data with a digest of a sample.
"""

# what a factory refers to is only known at run time
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import Tensor

from paceline.runner.user_errors import is_users_file
from paceline.training import Training, rate_ratios

Fingerprint = dict[str, dict[str, str]]
VERSION = f"{sys.implementation.cache_tag}"  # the same source compiles to other code elsewhere
MOST_FUNCTIONS = 500
LONGEST_VALUE = 300  # characters
SAMPLE = 64  # numbers of a tensor
NOT_SETTINGS = ("params", "lr", "initial_lr", "param_names")


def fingerprint_of_factory(factory: Callable[..., Any]) -> Fingerprint:
    """The code of a factory and of what it uses, and the plain values that these refer to."""
    found = _Code()
    with suppress(Exception):  # a help only: an unusual callable must not stop a study
        found.add("the factory", factory)
    return {f"code, {VERSION}": found.digests, "values": found.values}


def fingerprint_of_training(training: Training) -> Fingerprint:
    """Parameters, optimiser and data of a training that has just been built; empty for what it does not have."""
    settings: dict[str, str] = {}
    for describe in (_model, _optimizer, _data):
        with suppress(Exception):
            settings |= describe(training)
    return {"training": settings}


def _model(training: Any) -> dict[str, str]:
    shapes = [(name, tuple(parameter.shape)) for name, parameter in training.model.named_parameters()]
    count = sum(parameter.numel() for parameter in training.model.parameters())
    size = f"{len(shapes)} tensors of {count:,} numbers (shapes {_digest(repr(shapes))})"
    return {"model": type(training.model).__name__, "parameters": size}


def _optimizer(training: Any) -> dict[str, str]:
    groups = training.optimizer.param_groups
    names = [name for name in groups[0] if name not in NOT_SETTINGS]
    values = {name: [repr(group.get(name)) for group in groups] for name in names}
    return {
        "optimiser": type(training.optimizer).__name__,
        "ratios of its rates": ", ".join(f"{ratio:g}" for ratio in rate_ratios(training.optimizer)),
        **{name: ", ".join(dict.fromkeys(column))[:LONGEST_VALUE] for name, column in values.items()},
    }


def _data(training: Any) -> dict[str, str]:
    source = training.batches.source
    rows = getattr(source, "dataset", source)
    found = {"data": f"{type(rows).__name__} of {len(rows):,} rows ({_digest(_sample(rows))})"}
    return {**found, "batch size": repr(source.batch_size)} if hasattr(source, "batch_size") else found


def _sample(rows: Any) -> str:
    """Some numbers of the data, as far as they can be had without loading a row: a row may be drawn at random."""
    if hasattr(rows, "indices") and hasattr(rows, "dataset"):  # of a split
        return f"{_digest(repr(list(rows.indices)))} {_sample(rows.dataset)}"
    tensors = [tensor for tensor in getattr(rows, "tensors", ()) if isinstance(tensor, Tensor)]
    return " ".join(f"{tuple(t.shape)} {t.flatten()[:: max(1, t.numel() // SAMPLE)].tolist()}" for t in tensors)


class _Code:
    """Digests of functions and classes by name, found from a factory on, and the plain values they refer to."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self._seen: set[int] = set()

    def add(self, name: str, found: Any) -> None:
        """Add what a name refers to, if it is the user's code or a plain value."""
        if _is_plain(found):
            self.values[name] = repr(found)[:LONGEST_VALUE]
        elif isinstance(found, partial):
            self.add(name, found.func)
            for argument, value in (*enumerate(found.args, start=1), *found.keywords.items()):
                self.add(f"argument {argument}", value)
        elif isinstance(found, MethodType):
            self.add(name, found.__func__)
        elif isinstance(found, FunctionType):
            self._add_function(name, found)
        elif isinstance(found, type):
            self._add_class(found)

    def _add_function(self, name: str, function: FunctionType) -> None:
        code = function.__code__
        if id(code) in self._seen or len(self._seen) > MOST_FUNCTIONS or not _is_users(code.co_filename):
            return
        self._seen.add(id(code))
        self.digests[name] = _digest(_code_text(code) + repr(list(filter(_is_plain, function.__defaults__ or ()))))
        changed = {i.argval for i in _instructions(code) if i.opname in ("STORE_DEREF", "STORE_GLOBAL")}
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # one that is empty
                if free not in changed:
                    self.add(free, cell.cell_contents)
        for used in _names(code):
            if used in function.__globals__ and used not in changed:
                self.add(used, function.__globals__[used])

    def _add_class(self, found: type) -> None:
        for name, member in sorted(vars(found).items()):
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                self._add_function(f"{found.__name__}.{name}", function)


def _is_users(name: str) -> bool:
    """Whether code is the user's: in a file of his, or typed into a console."""
    return is_users_file(name) or (name.startswith("<") and not name.startswith("<frozen"))


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _instructions(inner)


def _code_text(code: CodeType) -> str:
    """What a function does, without its place in the file and its comments."""
    constants = [_code_text(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _is_plain(value: Any) -> bool:
    """Whether a value prints the same each time: numbers, text, and lists and dicts of them."""
    if isinstance(value, dict):
        return all(_is_plain(item) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
