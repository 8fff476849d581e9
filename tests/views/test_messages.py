"""What `tune` says while it runs: log lines for the beginning, decisions, failures and the end."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.study import Decided, Event, Interval, Report
from paceline.views.format import format_duration
from paceline.views.messages import study_messages
from tests.views.studies import EVENTS as PLAIN_EVENTS


def with_proposals(event: Event) -> Event:
    """An event as the tuner writes it: a decision says how many intervals follow."""
    if not isinstance(event, Decided):
        return event
    count = sum(isinstance(e, Interval) and e.round == event.round for e in PLAIN_EVENTS)
    return replace(event, details={**event.details, "proposals": count})


EVENTS = [with_proposals(event) for event in PLAIN_EVENTS]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="paceline")
    return caplog


def test_beginning_decisions_and_end_are_logged(lines: pytest.LogCaptureFixture) -> None:
    with study_messages(Path("runs/a"), ()) as said:
        for event in EVENTS:
            said.on_event(event)
    assert lines.messages[0].endswith("; in runs/a")
    assert " forks at first, rates from " in lines.messages[0]
    decisions = [message for message in lines.messages if message.startswith("decision ")]
    assert [d.split(":")[0] for d in decisions] == [
        f"decision {event.round}" for event in EVENTS if isinstance(event, Decided)
    ]
    failures = [event for event in EVENTS if event.kind == "failed"]
    assert sum(" failed at step " in message for message in lines.messages) == len(failures)
    assert lines.messages[-1].startswith("fork ")


def test_a_temporary_folder_is_called_so(lines: pytest.LogCaptureFixture) -> None:
    with study_messages(None, ()) as said:
        for event in EVENTS[:2]:
            said.on_event(event)
    assert lines.messages[0].endswith("; in a temporary folder (study= keeps it)")


def test_a_continued_study_says_how_far_it_is(lines: pytest.LogCaptureFixture) -> None:
    with study_messages(Path("runs/a"), EVENTS[:-1]):
        pass
    assert lines.messages == [message for message in lines.messages if message.startswith("runs/a goes on: ")] != []


def test_a_finished_study_says_that_nothing_is_run(lines: pytest.LogCaptureFixture) -> None:
    with study_messages(Path("runs/a"), EVENTS):
        pass
    (message,) = lines.messages
    assert message.startswith("runs/a is finished, nothing was run: fork ")
    assert message.endswith("; choose another folder to tune again")


def test_logging_is_as_it_was_afterwards() -> None:
    logger = logging.getLogger("paceline")
    before = (logger.level, list(logger.handlers))
    with study_messages(None, ()):
        assert logger.level == logging.INFO
    assert (logger.level, logger.handlers) == before


def test_a_level_set_by_the_program_is_kept() -> None:
    logger = logging.getLogger("paceline")
    logger.setLevel(logging.WARNING)
    try:
        with study_messages(None, ()):
            assert not logger.isEnabledFor(logging.INFO)
    finally:
        logger.setLevel(logging.NOTSET)


def test_what_a_study_will_take_is_said_and_corrected(lines: pytest.LogCaptureFixture) -> None:
    spent = {2: {"training": 10.0, "evaluation": 4.0}, 3: {"training": 30.0, "evaluation": 8.0, "journal": 2.0}}
    observed = sum(len(event.steps) for event in EVENTS[: _index(2)] if isinstance(event, Report))
    with study_messages(Path("runs/a"), ()) as said:
        for event in EVENTS:
            if isinstance(event, Interval) and event.fork == 0 and not event.start:
                said.on_expected(80.0, 20.0, 3 * observed)
            said.on_event(replace(event, spent=spent.get(event.round, {})) if isinstance(event, Decided) else event)
    said_so = [message for message in lines.messages if "expected" in message and "decision" not in message]
    assert said_so[0] == "about 2 min expected, 20 % of it for evaluation"
    done = sum(event.stop - event.start for event in EVENTS[: _index(2)] if isinstance(event, Report))
    total = EVENTS[0].settings["total_steps"]  # pyright: ignore[reportAttributeAccessIssue]
    seconds = 10.0 * total / done + 3 * 4.0
    assert said_so[1] == f"after 14 s: about {format_duration(seconds)} expected in all"
    assert lines.messages[-2] == "time: 40 s: 75 % training, 20 % evaluation, 5 % other"


def test_evaluations_that_take_long_are_named_with_the_size_that_would_not(lines: pytest.LogCaptureFixture) -> None:
    with study_messages(None, ()) as said:
        said.on_expected(60.0, 40.0, 36)
    assert lines.messages == ["about 2 min expected, 40 % of it for evaluation; a set 6 times smaller takes 10 %"]


def _index(round_: int) -> int:
    return next(i for i, event in enumerate(EVENTS) if isinstance(event, Decided) and event.round == round_)
