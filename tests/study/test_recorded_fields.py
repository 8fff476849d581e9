import math
from typing import Any

import pytest

from paceline.json_fields import FieldError
from paceline.study import Reason, because
from paceline.study.recorded_fields import read_details, read_settings_fields, reason_check
from paceline.study.wording import SENTENCES, describe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": [0.1, 0.01]}, "'lr' must be two rates that increase"),
        ({"lr": [0.0, 0.1]}, "'lr' must be a list, each item"),
        ({"steps": 0}, "'steps' must be a whole number from 1"),
        ({"mode": "mean"}, "'mode' must be one of min, max"),
        ({"tasks": ["a", "a"]}, "'tasks' must be names that differ"),
        ({"tasks": ["x" * 2_000]}, "'tasks' must be a list, each item of which is text of 1 to 1,000 characters"),
        ({"strategy": {"base": {"name": 3}}}, r"'strategy\.base\.name' must be text"),
        ({"strategy": {"plan": {"rungs": [math.inf]}}}, r"'strategy\.plan\.rungs' must be finite numbers"),
        ([], "an object"),
    ],
)
def test_settings_of_another_type_or_range_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        read_settings_fields(settings)


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"ranking": [{"fork": "0"}]}, r"'ranking\.fork' must be a whole number"),
        ({"forecast": [{"fork": 0}]}, "'forecast' must be .* an object with fork, high, low, median, steps"),
        ({"surface": {"values": [], "rates": [], "latents": [3]}}, r"'surface\.latents' must be .* an object"),
        ({"answers": [{"task": "a", "schedule": {}}]}, "'answers' must be"),
        ({"own": math.nan}, "'own' must be a finite number"),
    ],
)
def test_details_of_another_type_or_range_are_refused(details: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        read_details(details)


def test_details_of_your_own_may_be_any_plain_data() -> None:
    details = {"own": {"rows": [[1, 2], None]}, "proposals": 1}
    assert read_details(details) == details


def test_fields_of_our_own_reasons_are_checked_and_those_of_others_are_plain() -> None:
    with pytest.raises(FieldError):
        reason_check("clone", "fork")("<b>")
    assert reason_check("a kind of my own", "fork")("first") == "first"
    with pytest.raises(FieldError, match="a reason with a kind"):
        Reason.from_json({"fork": 3})


@pytest.mark.parametrize("kind", list(SENTENCES))
def test_a_reason_without_its_fields_still_has_a_sentence(kind: str) -> None:
    assert describe(because(kind))
    assert describe(because(kind, value=None, rates=None, why=None))
