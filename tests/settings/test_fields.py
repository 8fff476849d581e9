"""A setting is checked, changed by its name, and shown by `help()`."""

import inspect
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.settings import FamilySettings, NewTaskSettings, check_fields, show_settings, with_changes
from paceline.settings.fields import setting, settings_text


@dataclass(frozen=True)
class Example:
    count: int = setting(2, "How many.", at_least=1)
    share: float = setting(0.5, "How much.", inside=(0, 1))
    part: float = setting(1.0, "Which part.", is_share=True)
    kind: str = setting("plain", "Which kind.", choices=("plain", "fancy"))
    limit: int | None = setting(None, "How many at most.", at_least=1, default_text="as many as there are")

    def __post_init__(self) -> None:
        check_fields(self)


def example(a: int, *, steps: int, settings: Example | None = None, **changes: Any) -> Example:
    """Do something."""
    return with_changes(settings or Example(), changes, example)


show_settings(example, Example)


def test_whole_numbers_of_numpy_become_plain_ones() -> None:
    assert type(Example(count=np.int64(3)).count) is int
    assert Example(limit=None).limit is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": 2.5}, "count must be a whole number, got 2.5: pass an int"),
        ({"count": None}, "count must be a whole number, got None"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"share": 1.0}, r"share must lie in \(0, 1\), got 1.0"),
        ({"share": "much"}, r"share must lie in \(0, 1\), got 'much'"),
        ({"part": 0}, r"part must be a share in \(0, 1\], got 0"),
        ({"part": 1.5}, r"part must be a share in \(0, 1\], got 1.5"),
        ({"kind": "odd"}, 'kind must be "plain" or "fancy", got \'odd\''),
    ],
)
def test_a_value_that_is_not_allowed(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Example(**values)


def test_settings_are_changed_by_name() -> None:
    assert example(1, steps=2, count=3) == Example(count=3)
    assert example(1, steps=2, settings=Example(share=0.2), count=3) == Example(count=3, share=0.2)


@pytest.mark.parametrize(
    ("name", "nearest"), [("cuont", "did you mean 'count'"), ("step", "did you mean 'steps'"), ("zzz", "'zzz':")]
)
def test_a_name_that_does_not_exist(name: str, nearest: str) -> None:
    with pytest.raises(InputError, match=nearest) as error:
        example(1, **{"steps": 2, name: 3})
    assert all(field.name in str(error.value) for field in fields(Example))
    assert "steps" in str(error.value)


def test_a_function_shows_the_settings_as_keywords_with_their_defaults() -> None:
    shown = inspect.signature(example).parameters
    assert list(shown) == ["a", "steps", "settings", "count", "share", "part", "kind", "limit"]
    assert shown["count"].default == 2
    text = inspect.getdoc(example) or ""
    assert text.startswith("Do something.")
    assert "limit: How many at most. By default as many as there are." in text


@pytest.mark.parametrize("settings", [FamilySettings, NewTaskSettings])
def test_every_setting_has_a_help_text(settings: type) -> None:
    text = " ".join(settings_text(settings).split())
    for field in fields(settings):
        assert f"{field.name}: {field.metadata['help']}" in text
        assert field.metadata["help"].endswith(".")
