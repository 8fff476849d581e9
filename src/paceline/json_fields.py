"""Fields read from JSON: each must have the type and the range that its annotation says.

A study may come from a stranger, so nothing in it is taken on trust. A dataclass or a `TypedDict` says in its
annotations what it holds, and `check_of` turns an annotation into a function that returns a value or raises a
`FieldError`. A plain `int` counts something, so it is at least 0; `Annotated[int, Range(...)]` says otherwise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from reprlib import Repr
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from paceline.errors import InputError

MAX_COUNT = 10**12  # of steps, forks and whatever else is counted
MAX_WHOLE = 2**64  # of numbers that count nothing, such as seeds
MAX_TEXT = 100_000  # characters: a traceback
MAX_NAME = 1_000  # characters: names of tasks and of fields
MAX_DEPTH = 12  # lists and objects inside one another

Check = Callable[[Any], Any]
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 60
_FLAT = {int, float, str, bool, NoneType}


class FieldError(InputError):
    """A field has another type or range than it must have.

    Args:
        expected: what it must be.
        found: what was read.
        path: names of the field and of those that it lies in, the outermost first.
    """

    def __init__(self, expected: str, found: Any, path: tuple[str, ...] = ()) -> None:
        where = f"the field {'.'.join(path)[:MAX_NAME]!r}" if path else "it"
        super().__init__(f"{where} must be {expected}, got {shown(found)}")
        self.expected, self.found, self.path = expected, found, path

    def inside(self, name: str) -> "FieldError":
        """The same error, of a field that lies in the field `name`."""
        return FieldError(self.expected, self.found, (name, *self.path))


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the largest value of a number, or the least and the largest length of a text or a list."""

    low: float
    high: float


Name = Annotated[str, Range(0, MAX_NAME)]


def shown(value: Any) -> str:
    """A value for a message, shortened.

    >>> shown([1.5] * 1_000)
    '[1.5, 1.5, 1.5, 1.5, 1.5, 1.5, ...]'
    """
    return _SHOWN.repr(value)


def whole_number(low: float = 0, high: float = MAX_COUNT) -> Check:
    """A check for whole numbers in a range; a bool is none."""

    def check(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise FieldError(f"a whole number from {low:,} to {high:,}", value)

    return check


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A check for finite numbers in a range."""
    within = "" if (low, high) == (-math.inf, math.inf) else f" from {low:g} to {high:g}"

    def check(value: Any) -> float:
        if type(value) is float and math.isfinite(value) and low <= value <= high:
            return value
        if type(value) is int and abs(value) <= MAX_WHOLE and low <= value <= high:
            return float(value)
        raise FieldError(f"a finite number{within}", value)

    return check


def text(low: float = 0, high: float = MAX_TEXT) -> Check:
    """A check for text of some length."""

    def check(value: Any) -> str:
        if type(value) is str and low <= len(value) <= high:
            return value
        raise FieldError(f"text of {low:,} to {high:,} characters", value)

    return check


def plain_data(value: Any, depth: int = MAX_DEPTH) -> Any:
    """JSON of any structure: finite numbers, text, lists and objects, not too deep."""
    if type(value) is dict:
        items = cast("dict[str, Any]", value)
        if depth == 0:
            raise FieldError(f"at most {MAX_DEPTH} levels deep", items)
        for name, item in items.items():
            try:
                _name(name)
                plain_data(item, depth - 1)
            except FieldError as error:
                raise error.inside(name) from None
    elif type(value) is list:
        _plain_list(cast("list[Any]", value), depth)
    else:
        _plain_scalar(value)
    return cast("Any", value)


def _plain_list(items: list[Any], depth: int) -> None:
    if depth == 0:
        raise FieldError(f"at most {MAX_DEPTH} levels deep", items)
    kinds = set(map(type, items))
    if kinds == {float}:
        if not all(map(math.isfinite, items)):
            raise FieldError("finite numbers", items)
    elif kinds <= _FLAT:
        for item in items:
            _plain_scalar(item)
    else:
        for item in items:
            plain_data(item, depth - 1)


def _plain_scalar(value: Any) -> None:
    if isinstance(value, str):
        _text(value)
    elif type(value) is int or type(value) is float:
        _number(value)
    elif value is not None and type(value) is not bool:
        raise FieldError("plain data", value)


@cache
def check_of(annotation: Any) -> Check:
    """What checks a value for this annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is NotRequired:
        return check_of(arguments[0])
    if origin is Annotated:
        return _with_range(*arguments)
    if origin in (Union, UnionType):
        return _optional(check_of(next(each for each in arguments if each is not NoneType)))
    if origin is Literal:
        return _one_of(arguments)
    if origin in (list, tuple):
        kind = {int: int, float: float, float | None: float}.get(arguments[0])
        return list_of(check_of(arguments[0]), as_tuple=origin is tuple, kind=kind)
    if origin is dict:
        return plain_data if arguments[1] is Any else _mapping_of(check_of(arguments[1]))
    if is_typeddict(annotation):
        return record(annotation)
    return (
        cast("Check", annotation.from_json) if hasattr(annotation, "from_json") else _SIMPLE.get(annotation, plain_data)
    )


def _with_range(annotation: Any, within: Range) -> Check:
    if get_origin(annotation) in (list, tuple):
        return _of_length(check_of(annotation), within)
    return {int: whole_number, float: number, str: text}[annotation](within.low, within.high)


def _of_length(check: Check, within: Range) -> Check:
    def with_length(value: Any) -> Any:
        if type(value) is not list or not within.low <= len(cast("list[Any]", value)) <= within.high:
            raise FieldError(f"a list of {within.low:,} to {within.high:,} items", value)
        return check(value)

    return with_length


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _one_of(choices: tuple[Any, ...]) -> Check:
    def check(value: Any) -> Any:
        if type(value) is str and value in choices:
            return value
        raise FieldError(f"one of {', '.join(choices)}", value)

    return check


def list_of(check: Check, *, as_tuple: bool = False, kind: type | None = None) -> Check:
    """A check for lists whose items pass another check.

    Args:
        check: the check of each item.
        as_tuple: whether a tuple is returned.
        kind: `float` if every finite number passes the check, `int` if every count does. Lists of these are frequent,
            and pass without a call for each item.
    """
    made = cast("Check", tuple if as_tuple else list)
    passes = {float: _are_finite, int: _are_counts}.get(cast("type", kind), _is_slow)

    def check_all(value: Any) -> Any:
        items: list[Any] = value
        if type(items) is not list and type(items) is not tuple:  # pyright: ignore[reportUnnecessaryComparison]
            raise FieldError("a list", items)
        if passes(items):
            return made(items)
        try:
            return made(map(check, items))
        except FieldError as error:
            raise (
                error if error.path else FieldError(f"a list, each item of which is {error.expected}", items)
            ) from None

    return check_all


def _are_finite(items: Sequence[Any]) -> bool:
    all_floats = [*map(type, items)].count(float) == len(items)
    return all_floats and math.isfinite(sum(items))  # a huge sum only takes the slow way


def _are_counts(items: Sequence[Any]) -> bool:
    """Whether each passes the check of a plain `int`."""
    all_whole = [*map(type, items)].count(int) == len(items)
    return all_whole and (not items or (min(items) >= 0 and max(items) <= MAX_COUNT))


def _is_slow(items: Sequence[Any]) -> bool:
    return False


def _mapping_of(check: Check) -> Check:
    def check_all(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise FieldError("an object", value)
        items = cast("dict[str, Any]", value)
        return {_name(name): check_field(check, name, item) for name, item in items.items()}

    return check_all


def check_field(check: Check, name: str, value: Any) -> Any:
    """The value of a field, or an error that names it."""
    try:
        return check(value)
    except FieldError as error:
        raise error.inside(name) from None


@cache
def checks_of(cls: type) -> Mapping[str, Check]:
    """The check of each annotated field of a class."""
    hints = get_type_hints(cls, include_extras=True)
    names = [each.name for each in fields(cls)] if is_dataclass(cls) else list(hints)
    return {name: check_of(hints[name]) for name in names}


def record(cls: type) -> Check:
    """A check for objects with the fields of a `TypedDict`. Other fields may hold any plain data."""
    checks, required = checks_of(cls), cast("frozenset[str]", getattr(cls, "__required_keys__"))  # noqa: B009

    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise FieldError("an object", value)
        items = cast("dict[str, Any]", value)
        if not required <= items.keys():
            raise FieldError(f"an object with {', '.join(sorted(required))}", items)
        for name, item in items.items():
            try:
                checks.get(name, plain_data)(item)
            except FieldError as error:
                raise error.inside(name) from None
        return items

    return check


_name, _text, _number = text(high=MAX_NAME), text(), number()


def _is_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise FieldError("true or false", value)


_SIMPLE: dict[Any, Check] = {int: whole_number(), float: _number, str: _text, bool: _is_bool, Any: plain_data}
