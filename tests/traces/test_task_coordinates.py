"""Coordinates of tasks: their scales, and what is refused."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.traces import TaskCoordinates, check_coordinates

AT = {"b": {"rows": 100, "depth": 2}, "a": {"rows": 10_000, "depth": 4}, "c": {"depth": 6, "rows": 1_000}}


def test_each_coordinate_is_standardised_on_its_own_scale() -> None:
    known = TaskCoordinates.of(AT)
    rows = known.rows(["a", "b", "c"])
    assert known.names == ("depth", "rows")
    assert known.is_log == (False, True)  # depth spans no more than a factor of three
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(0), 1)
    np.testing.assert_allclose(rows[:, 1], np.array([1, -1, 0]) * 1.5**0.5)
    assert TaskCoordinates.of(dict(reversed(AT.items()))) == known


def test_equal_and_negative_coordinates_are_not_on_a_log_scale() -> None:
    known = TaskCoordinates.of({"a": {"shift": -1, "same": 5}, "b": {"shift": 100, "same": 5}})
    assert known.is_log == (False, False)
    np.testing.assert_allclose(known.rows(["a", "b"]), [[0, -1], [0, 1]])


def test_a_further_task_lies_on_the_same_scales() -> None:
    known = TaskCoordinates.of(AT)
    more = known.with_task("d", {"rows": 100_000, "depth": 4})
    np.testing.assert_allclose(more.rows(["d"]), [[0, 2 * 1.5**0.5]])
    np.testing.assert_allclose(more.rows(list(AT)), known.rows(list(AT)))
    with pytest.raises(InputError, match=r"at\['d'\]\['rows'\] must be positive"):
        known.with_task("d", {"rows": 0, "depth": 4}).rows(["d"])
    with pytest.raises(InputError, match="same coordinates, depth, rows, got rows for 'd'"):
        known.with_task("d", {"rows": 5})
    with pytest.raises(InputError, match="coordinates depth, rows of task 'd'"):
        known.rows(["d"])


@pytest.mark.parametrize("at", [{}, {"a": {}}, {"a": 5}, 5])
def test_coordinates_are_named(at) -> None:
    with pytest.raises(InputError, match="give each task coordinates by name"):
        check_coordinates(at)


@pytest.mark.parametrize("value", [np.nan, np.inf, "5", None, True])
def test_coordinates_are_finite_numbers(value) -> None:
    with pytest.raises(InputError, match=r"at\['a'\]\['rows'\] must be a finite number"):
        check_coordinates({"a": {"rows": value}})


def test_checked_coordinates_are_plain_and_sorted() -> None:
    checked = check_coordinates({"b": {"y": np.int64(2), "x": np.float32(0.5)}, "a": {"x": 1, "y": 2}})
    assert repr(checked) == "{'a': {'x': 1.0, 'y': 2.0}, 'b': {'x': 0.5, 'y': 2.0}}"
