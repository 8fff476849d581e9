"""Options of a command made from the fields of a settings class, so that a setting is written once."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Any

import typer


def with_settings_options(settings: type, *, after: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each setting that has one, after the parameter of this name.

    The command takes them as `**settings`, by the names of the fields.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        position = [p.name for p in own].index(after) + 1
        options = [_option(field) for field in fields(settings) if field.metadata["option"] is not None]
        parameters = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own[:position], *options, *own[position:])
        ]
        setattr(command, "__signature__", signature.replace(parameters=parameters))  # noqa: B010
        return command

    return decorate


def _option(field: Any) -> inspect.Parameter:
    """The option of one field."""
    rules: dict[str, Any] = field.metadata
    kind: Any = rules["option"]
    if kind is str and rules["choices"]:
        kind = StrEnum(field.name, {choice: choice for choice in rules["choices"]})
    if field.default is None:
        kind = kind | None
    option = typer.Option(help=rules["help"].replace("`", ""), show_default=rules["default_text"] or True)
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind, option]
    )


def settings_values(given: dict[str, Any]) -> dict[str, Any]:
    """The settings as plain values: the command's enumerations become strings."""
    return {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()}


def settings_arguments(settings: type, values: dict[str, Any]) -> str:
    """The options of a command line that has these values, without those that are the default.

    Args:
        settings: the settings class.
        values: by name, as a study's settings hold them.
    """
    words = list[str]()
    for field in fields(settings):
        if field.metadata["option"] is None or field.name not in values or values[field.name] == field.default:
            continue
        option, value = f"--{field.name.replace('_', '-')}", values[field.name]
        words += [option if value else f"--no-{option[2:]}"] if isinstance(value, bool) else [option, str(value)]
    return " ".join(words)
