"""Options of a command made from the fields of a settings class."""

import inspect
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from paceline.cli.settings_options import settings_arguments, settings_values, with_settings_options
from paceline.cli.tasks_command import tasks
from paceline.settings import FamilySettings
from paceline.settings.fields import setting


@dataclass(frozen=True)
class Example:
    count: int = setting(2, "How many.", option=int)
    kind: str = setting("plain", "Which kind.", choices=("plain", "fancy"), option=str)
    limit: int | None = setting(None, "At most.", option=int, default_text="all")
    loud: bool = setting(False, "Whether it is loud.", option=bool)
    depth: int = setting(3, "Not an option.")


app, calls = typer.Typer(), list[Any]()


@app.command()
@with_settings_options(Example, after="steps")
def example(steps: int, last: Annotated[int, typer.Option()] = 1, **settings: Any) -> None:
    calls.append((steps, last, Example(**settings_values(settings))))


def run(*arguments: str) -> tuple[int, int, Example]:
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return calls[-1]


def test_options_have_the_defaults_of_the_fields() -> None:
    assert run("5") == (5, 1, Example())
    assert run("5", "--count", "4", "--kind", "fancy", "--limit", "7", "--loud", "--last", "2") == (
        5,
        2,
        Example(4, "fancy", 7, loud=True),
    )


def test_a_field_that_is_no_option_is_refused_and_so_is_another_choice() -> None:
    assert CliRunner().invoke(app, ["5", "--depth", "1"]).exit_code == 2
    assert CliRunner().invoke(app, ["5", "--kind", "odd"]).exit_code == 2


def test_options_come_after_the_parameter_that_is_named() -> None:
    assert list(inspect.signature(example).parameters) == ["steps", "count", "kind", "limit", "loud", "last"]


def test_arguments_leave_out_defaults() -> None:
    assert settings_arguments(Example, {"count": 2, "kind": "fancy", "limit": None, "loud": True, "depth": 9}) == (
        "--kind fancy --loud"
    )
    assert settings_arguments(FamilySettings, replace(FamilySettings(), summed_rate=False).to_json()) == (
        "--base {'name': 'constant'} --weights raw --no-summed-rate"
    )


def test_paceline_tasks_has_an_option_for_every_setting_of_a_family() -> None:
    options = set(inspect.signature(tasks).parameters)
    assert {field.name for field in fields(FamilySettings)} - options == {"search", "infill_search"}
