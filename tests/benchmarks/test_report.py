"""Tables and intervals of reports."""

import numpy as np
import pytest

from benchmarks._report import mean_and_interval, table, with_error


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["a", "long"], [["b", 1.23456], ["ccc", 2]]).splitlines() == [
        "  a  long",
        "---------",
        "  b  1.23",
        "ccc     2",
    ]


def test_the_interval_is_two_standard_errors_wide() -> None:
    mean, low, high = mean_and_interval(np.array([1.0, 2.0, 3.0]))
    assert (mean, high - low) == (2.0, pytest.approx(2 * 1.96 / np.sqrt(3)))


def test_a_single_value_has_no_error() -> None:
    assert with_error([1.0]) == "1.000 +- nan (1)"
    assert with_error([1.0, 3.0]) == "2.000 +- 1.000 (2)"
