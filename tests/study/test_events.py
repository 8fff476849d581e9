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
