import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from paceline.json_fields import MAX_COUNT, FieldError, Name, Range, check_field, check_of, checks_of, plain_data, shown


class Row(TypedDict):
    fork: int
    values: list[float | None]
    task: NotRequired[Name]


@dataclass(frozen=True)
class Example:
    count: int
    share: Annotated[float, Range(0, 1)] = 0.5


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 0),
        (int, MAX_COUNT),
        (Annotated[int, Range(-5, 5)], -5),
        (int | None, None),
        (float, -1.5),
        (float, 3),
        (bool, False),
        (str, "text"),
        (Literal["min", "max"], "min"),
        (list[float], [1.0, 2.0]),
        (list[float | None], [1.0, None]),
        (Annotated[list[int], Range(2, 2)], [1, 2]),
        (dict[str, float], {"a": 1.0}),
        (dict[str, Any], {"a": [1, {"b": None}]}),
        (Row, {"fork": 1, "values": [None, 2.0], "more": ["of", 3]}),
    ],
    ids=str,
)
def test_what_an_annotation_allows_is_returned(annotation: Any, value: Any) -> None:
    assert check_of(annotation)(value) == value


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, True, "a whole number from 0 to 1,000,000,000,000, got True"),
        (int, "3", "a whole number from 0 to .*, got '3'"),
        (int, 3.0, "a whole number"),
        (int, -1, "a whole number from 0"),
        (int, 10**13, "got 10000000000000"),
        (float, "0.1", "a finite number, got '0.1'"),
        (float, math.inf, "a finite number, got inf"),
        (float, 10**400, "a finite number"),
        (float, False, "a finite number"),
        (float, None, "a finite number"),
        (Annotated[float, Range(0, 1)], 1.5, "a finite number from 0 to 1, got 1.5"),
        (bool, 1, "true or false"),
        (str, ["text"], "text of 0 to 100,000 characters"),
        (Name, "x" * 1_001, "text of 0 to 1,000 characters"),
        (Literal["min", "max"], "mean", "one of min, max, got 'mean'"),
        (list[int], {"0": 1}, "a list, got"),
        (list[int], [1, True], "a list, each item of which is a whole number"),
        (list[float], [1.0, math.nan], "a list, each item of which is a finite number"),
        (Annotated[list[int], Range(2, 2)], [1], "a list of 2 to 2 items"),
        (dict[str, float], [], "an object"),
        (dict[str, Any], nested(20), "at most 12 levels deep"),
        (Row, {"fork": 1}, "an object with fork, values"),
        (Row, {"fork": 1, "values": [], "more": math.inf}, "'more' must be a finite number"),
    ],
    ids=str,
)
def test_other_types_and_ranges_are_refused(annotation: Any, value: Any, expected: str) -> None:
    with pytest.raises(FieldError, match=expected):
        check_of(annotation)(value)


def test_an_error_names_the_field_and_those_around_it() -> None:
    with pytest.raises(FieldError, match=r"the field 'rows\.fork' must be a whole number .*, got 'x'"):
        check_field(check_of(list[Row]), "rows", [{"fork": "x", "values": []}])


def test_the_fields_of_a_dataclass_have_the_checks_of_their_annotations() -> None:
    checks = checks_of(Example)
    assert (checks["count"](3), checks["share"](0.25)) == (3, 0.25)
    with pytest.raises(FieldError, match="from 0 to 1"):
        checks["share"](2.0)


def test_plain_data_may_hold_anything_finite_that_is_not_too_deep() -> None:
    data = {"rates": [0.1, 0.2], "mixed": [1, None, "a", True], "rows": [{"x": []}]}
    assert plain_data(data) == data
    assert plain_data(nested(12))
    for bad in ({"a": {"b": [math.nan]}}, [1, math.inf], nested(13), {"k" * 1_001: 1}, {"a": object()}, [10**30]):
        with pytest.raises(FieldError):
            plain_data(bad)


def test_values_are_shortened_in_messages() -> None:
    assert len(shown("x" * 10**6)) < 100
    assert len(shown([[1.0] * 1_000] * 1_000)) < 1_000
    assert "\x1b" not in shown("\x1b[31m")
