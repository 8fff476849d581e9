import math

import pytest

from paceline.errors import InputError
from paceline.study import Failure, Interval
from paceline.traces import Schedule
from paceline.tuner.reports import checked, unsound_value

INTERVAL = Interval(2, None, 10, 20, Schedule.constant(0.1, 100), 1)


def test_a_list_is_of_raw_weights_and_numbers_become_plain() -> None:
    assert checked(INTERVAL, [15, 20], [1, 2]) == ((15, 20), {"raw": (1.0, 2.0)})
    assert checked(INTERVAL, range(20, 21), {"averaged": [0.5]}) == ((20,), {"averaged": (0.5,)})


def test_a_run_may_be_observed_before_its_first_step() -> None:
    first = Interval(2, None, 0, 20, Schedule.constant(0.1, 100), 1)
    assert checked(first, [0, 20], [3.0, 2.0])[0] == (0, 20)


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [
        ([], [], "fork 2 reported nothing between steps 10 and 20"),
        ([10, 20], [1.0, 1.0], r"increase within \(10, 20\], got 10\.\.20"),
        ([15, 21], [1.0, 1.0], r"increase within \(10, 20\], got 15\.\.21"),
        ([15], {"mean": [1.0]}, "got 1 steps and 1 under 'mean'"),
    ],
)
def test_reports_that_cannot_be_are_refused(steps, values, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(INTERVAL, steps, values)


@pytest.mark.parametrize(
    ("columns", "failure"),
    [
        ({"raw": (1.0, 2.0)}, None),
        ({"raw": (1.0, math.nan)}, Failure("not finite", step=20)),
        ({"raw": (1.0, 2.0), "averaged": (1e200, math.nan)}, Failure("diverged", step=15)),
    ],
)
def test_the_first_unsound_value_is_the_failure(columns, failure: Failure | None) -> None:
    assert unsound_value((15, 20), columns) == failure
