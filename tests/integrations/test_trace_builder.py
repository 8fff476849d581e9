from math import inf, nan

import pytest

from paceline import Schedule
from paceline.errors import InputError
from paceline.integrations.trace_builder import build_trace, constant_rate


def test_a_rate_is_a_column_or_a_number_or_a_schedule() -> None:
    schedule = Schedule.constant(0.1, 10)
    assert constant_rate(None, ["lr"]) is None
    assert constant_rate("lr", ["lr"]) is None
    assert constant_rate("rate", ["lr"]) is None
    assert constant_rate("0.1", ["lr"]) == 0.1
    assert constant_rate("0.1", ["0.1"]) is None  # a column of that name
    assert constant_rate(0.1, ["lr"]) == 0.1
    assert constant_rate(schedule, ["lr"]) is schedule


def test_rates_hold_until_the_next_one_and_to_the_end() -> None:
    trace = build_trace("run", [(0, 0.1), (20, 0.01)], [(10, 3.0), (30, 2.0), (40, 1.0)], "min")
    assert trace.steps.tolist() == [10, 30, 40]
    assert (trace.schedule(0), trace.schedule(19), trace.schedule(20), trace.schedule(39)) == (0.1, 0.1, 0.01, 0.01)
    assert trace.schedule.steps == 40


def test_entries_after_a_return_to_a_checkpoint_replace_those_before() -> None:
    trace = build_trace("run", 0.1, [(10, 3.0), (20, 9.0), (30, 9.5), (20, 2.0), (25, 1.0)], "min")
    assert trace.steps.tolist() == [10, 20, 25]
    assert trace.values.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("values", "usable", "failed"),
    [
        ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0], False),
        ([3.0, nan, 1.0], [3.0, 1.0], False),
        ([3.0, nan, 1.0, nan], [3.0, 1.0], False),  # this log has nan for "not measured"
        ([3.0, 2.0, nan, nan], [3.0, 2.0, nan], True),
        ([3.0, 2.0, inf], [3.0, 2.0, inf], True),
        ([3.0, 1e120], [3.0, 1e120], True),
        ([3.0, nan, 1.0, inf], [3.0, 1.0, inf], True),
    ],
)
def test_gaps_are_left_out_and_a_failure_ends_the_run(values: list[float], usable: list[float], failed: bool) -> None:
    trace = build_trace("run", 0.1, list(enumerate(values)), "min")
    assert trace.failed is failed
    assert trace.values.tolist() == pytest.approx(usable, nan_ok=True)


@pytest.mark.parametrize(
    ("rates", "values", "message"),
    [
        (0.1, [], "run: expected finite values, got 0 and none of them finite"),
        (0.1, [(1, nan)], "got 1 and none of them finite"),
        ([(1, 0.0)], [(1, 2.0)], "run: expected positive rates, got 1 and none above 0"),
    ],
)
def test_runs_without_values_or_rates_are_refused(rates, values, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_trace("run", rates, values, "min")
