"""Fields of a settings class: their help texts, their checks, and how a function takes them as keywords."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from difflib import get_close_matches
from operator import index
from textwrap import indent, wrap
from typing import Any, TypeVar

from paceline.errors import InputError

Settings = TypeVar("Settings")


def setting(
    default: Any,
    text: str,
    *,
    at_least: int | None = None,
    inside: "tuple[float, float] | None" = None,
    is_share: bool = False,
    choices: tuple[Any, ...] = (),
    option: type | None = None,
    default_text: str = "",
) -> Any:
    """A field of a settings class.

    Args:
        default: its value unless it is set; a default of None means that the value is worked out.
        text: what it is, in a sentence or two: shown by `help()` and by the command.
        at_least: the smallest whole number that is allowed.
        inside: an open interval that the number must lie in.
        is_share: whether it is a share: above 0, at most 1.
        choices: the values that are allowed.
        option: type of the command's option; without it the command has no such option.
        default_text: what a default of None stands for.
    """
    metadata = {
        "help": text,
        "at_least": at_least,
        "inside": inside,
        "is_share": is_share,
        "choices": choices,
        "option": option,
        "default_text": default_text,
    }
    return field(default=default, metadata=metadata)


def check_fields(settings: Any) -> None:
    """Check every field against what `setting` allows; whole numbers of NumPy become Python's."""
    for each in fields(settings):
        value, rules = getattr(settings, each.name), each.metadata
        if not rules or (value is None and each.default is None):
            continue
        if rules["at_least"] is not None:
            object.__setattr__(settings, each.name, _whole_number(each.name, value, rules["at_least"]))
        if rules["inside"] is not None:
            _check_inside(each.name, value, *rules["inside"])
        if rules["is_share"] and not (isinstance(value, int | float) and 0 < value <= 1):
            raise InputError(f"{each.name} must be a share in (0, 1], got {value!r}")
        if rules["choices"] and value not in rules["choices"]:
            allowed = " or ".join(f'"{c}"' if isinstance(c, str) else str(c) for c in rules["choices"])
            raise InputError(f"{each.name} must be {allowed}, got {value!r}")


def _whole_number(name: str, value: Any, least: int) -> int:
    try:
        number = index(value)
    except TypeError as error:
        raise InputError(f"{name} must be a whole number, got {value!r}: pass an int") from error
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {value}")
    return number


def _check_inside(name: str, value: Any, low: float, high: float) -> None:
    if not isinstance(value, int | float) or not low < value < high:
        raise InputError(f"{name} must lie in ({low:g}, {high:g}), got {value!r}")


def with_changes(settings: Settings, changes: Mapping[str, Any], function: Callable[..., Any]) -> Settings:
    """The settings with some of them changed.

    Args:
        settings: what is changed.
        changes: new values by name.
        function: the function that was given them as keywords; see `show_settings`.
    """
    allowed = {each.name for each in fields(settings)}  # pyright: ignore[reportArgumentType]
    for name in changes:
        if name not in allowed:
            keywords = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
            nearest = get_close_matches(name, keywords, 1)
            hint = f", did you mean {nearest[0]!r}?" if nearest else ":"
            raise InputError(f"{function.__name__} has no setting {name!r}{hint} It has {', '.join(keywords)}")
    return replace(settings, **changes)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


def show_settings(function: Callable[..., Any], settings: type) -> None:
    """Show the settings in the signature and the help of a function that takes them as `**changes`."""
    parameters = list(inspect.signature(function).parameters.values())
    own = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    own_names = {p.name for p in own}
    extra = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(settings)
        if each.name not in own_names
    ]
    signature = inspect.signature(function).replace(parameters=[*own, *extra])
    setattr(function, "__signature__", signature)  # noqa: B010  functions declare no such attribute
    function.__doc__ = f"{inspect.getdoc(function)}\n\n{settings_text(settings)}"


def document_fields(settings: type[Settings]) -> type[Settings]:
    """Add the fields and their help texts to the docstring of a settings class."""
    settings.__doc__ = f"{inspect.getdoc(settings)}\n\n{settings_text(settings, 'Args:')}"
    return settings


def settings_text(settings: type, title: str = "Settings:") -> str:
    """The settings and what they mean, as a section of a docstring."""
    lines = [title]
    for each in fields(settings):
        text = f"{each.name}: {each.metadata['help']}"
        if each.metadata["default_text"]:
            text += f" By default {each.metadata['default_text']}."
        first, *rest = wrap(text, 110)
        lines += [indent(first, "    "), *(indent(line, "        ") for line in rest)]
    return "\n".join(lines)
