"""Warnings about logs: once for each problem."""

import warnings

import pytest

from paceline.integrations.grouped_warnings import GroupedWarnings


def caught(*messages: tuple[str, str]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with GroupedWarnings() as grouped:
            for message, log in messages:
                grouped.add(message, log)
            assert not found
    return [str(warning.message) for warning in found]


def test_messages_that_differ_only_in_the_log_are_one_warning() -> None:
    assert caught(("a.csv: no rate", "a.csv")) == ["a.csv: no rate"]
    assert caught(("a.csv: no rate.", "a.csv"), ("b.csv: no rate.", "b.csv")) == [
        "a.csv: no rate; the same for 1 other"
    ]
    assert caught(*((f"{log}: no rate", log) for log in "abc"), ("d: no step", "d")) == [
        "a: no rate; the same for 2 others",
        "d: no step",
    ]


def test_an_error_does_not_swallow_the_warnings() -> None:
    def read_logs() -> None:
        with GroupedWarnings() as grouped:
            grouped.add("a.csv: no rate", "a.csv")
            raise ZeroDivisionError

    with pytest.warns(UserWarning, match="no rate"), pytest.raises(ZeroDivisionError):
        read_logs()
