import json

import numpy as np
import pytest

from paceline.errors import JournalError
from paceline.study import Interval, Report
from paceline.study.events import from_json, to_json
from paceline.traces import Schedule
from tests.study.test_journal import EVENTS, same

SCHEDULE = Schedule.constant(0.1, 100)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_goes_to_json_and_back(event) -> None:
    again = from_json(json.loads(json.dumps(to_json(event), allow_nan=False)))
    assert type(again) is type(event)
    assert same(again, event)


def test_a_value_that_is_not_finite_comes_back_as_nan() -> None:
    report = from_json(to_json(EVENTS[5]))
    assert isinstance(report, Report)
    assert np.isnan(report.values["raw"][1])
    assert report.kind == "failed"


@pytest.mark.parametrize(
    ("interval", "origin"),
    [
        (Interval(3, None, 0, 10, SCHEDULE, 1, task=2), (2, 0)),
        (Interval(3, None, 10, 20, SCHEDULE, 2), (3, 10)),
        (Interval(4, 3, 10, 20, SCHEDULE, 2), (3, 10)),
    ],
)
def test_an_interval_begins_from_its_task_itself_or_its_parent(interval: Interval, origin: tuple[int, int]) -> None:
    assert interval.origin == origin


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"event": "obsrved"}, "unknown event 'obsrved': expected one of created, proposed"),
        ({"event": "dropped", "fork": 1, "step": 2}, "event 'dropped' lacks the field 'reason'"),
    ],
)
def test_what_is_no_event_is_refused(data, message: str) -> None:
    with pytest.raises(JournalError, match=message):
        from_json(data)


REPORT = {"event": "observed", "fork": 0, "start": 0, "stop": 20, "steps": [10, 20], "values": {"raw": [1.0, 2.0]}}


@pytest.mark.parametrize("steps", [[20, 10], [10, 10], [10.0, 20.0], [False, True], [-1, 20], [10, 10**13], "ab", None])
def test_steps_of_a_report_are_counts_that_increase(steps) -> None:
    assert from_json(REPORT).steps == (10, 20)  # also if equal steps of another type come after it
    with pytest.raises(JournalError, match="the field 'steps' must be"):
        from_json({**REPORT, "steps": steps})


@pytest.mark.parametrize("length", [2, 1_500])
def test_reports_share_the_steps_of_their_round_unless_they_are_many(length: int) -> None:
    data = {**REPORT, "steps": [*range(length)], "values": {"raw": [1.0] * length}}
    first, second = from_json(json.loads(json.dumps(data))), from_json(json.loads(json.dumps(data)))
    assert first == second
    assert (first.steps is second.steps) == (length == 2)
    with pytest.raises(JournalError, match="steps that increase"):
        from_json({**data, "steps": [1, *range(1, length)]})
