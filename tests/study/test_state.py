"""The one fold of a journal."""

import pytest

from paceline.errors import JournalError
from paceline.study import Created, Decided, Dropped, Failure, Finished, Head, Interval, Report, StudyState, because
from paceline.study.state import head_of
from paceline.traces import Schedule

RATE = Schedule.constant(0.1, 100)
VALUES = {"raw": (1.0,)}
EVENTS = [
    Created({"lr": [1e-4, 1e-1], "steps": 40}),
    Decided(1, 0, (because("start", rates=[0.1, 0.2]),)),
    Interval(0, None, 0, 20, RATE, 1),
    Interval(1, None, 0, 20, RATE, 1),
    Report(1, 0, 20, (20,), VALUES),
    Report(0, 0, 20, (20,), VALUES),
    Decided(2, 20, (), {"ranking": [{"fork": 1, "value": 1.0}]}),
    Dropped(0, 20, because("behind", value=1.0)),
    Interval(1, None, 20, 40, RATE, 2),
    Interval(2, 1, 20, 40, RATE, 2),
    Report(2, 20, 30, (30,), VALUES, Failure("raised", "bad")),
]


def test_it_adds_up_forks_decisions_and_steps() -> None:
    state = StudyState.of(EVENTS)
    assert state.settings == {"lr": [1e-4, 1e-1], "steps": 40}
    assert state.done_steps == 50
    assert [(d.event, d.done_steps, d.intervals, d.dropped) for d in state.decisions] == [
        (1, 0, [2, 3], []),
        (6, 40, [8, 9], [0]),
    ]
    assert {n: (f.parent, f.start, f.step, f.alive, f.running) for n, f in state.forks.items()} == {
        0: (None, 0, 20, False, False),
        1: (None, 0, 20, True, True),
        2: (1, 20, 30, False, False),
    }
    assert [interval.fork for interval in state.running] == [1]
    assert state.report_on(9) == EVENTS[10]
    assert state.report_on(8) is None
    assert state.drop_of(state.forks[0]) == EVENTS[7]
    assert state.latest_detail("ranking") == [{"fork": 1, "value": 1.0}]
    assert state.latest_detail("ranking", end=6) == []
    assert not state.is_finished


def test_heads_are_enough_and_events_are_read_when_they_are_asked_for() -> None:
    asked = []

    class Log(list):
        def __getitem__(self, number):
            asked.append(number)
            return super().__getitem__(number)

    state = StudyState(Log(EVENTS))
    asked.clear()
    for event in EVENTS:
        state.add(head_of(event))
    assert asked == []
    assert [interval.fork for interval in state.running] == [1]
    assert asked == [8]


def test_intervals_that_run_are_in_the_order_they_were_proposed() -> None:
    state = StudyState.of([EVENTS[0], EVENTS[1], EVENTS[3], EVENTS[2]])
    assert [interval.fork for interval in state.running] == [1, 0]


def test_a_finished_study_says_how_it_ended() -> None:
    end = Finished(1, 40, 1.0, "raw")
    state = StudyState.of([*EVENTS, Report(1, 20, 40, (40,), VALUES), end])
    assert state.finished == end
    assert state.running == []


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (Head("observed", 0, None, 20, 40), "fork 0 has no open interval"),
        (Head("failed", 7, None, 20, 40), "there is no fork 7"),
        (Head("dropped", 7), "there is no fork 7"),
        (Head("proposed", 7), "it lacks 'start'"),
        (Head("observed"), "it lacks 'fork'"),
    ],
)
def test_an_event_that_does_not_follow_is_refused(head: Head, message: str) -> None:
    state = StudyState.of(EVENTS)
    with pytest.raises(JournalError, match=f"event 11 .*{message}.*: the journal was edited, restore it"):
        state.add(head)
    assert state.count == len(EVENTS)


def test_an_interval_is_open_until_it_is_reported_on() -> None:
    state = StudyState.of(EVENTS[:5])
    assert (state.is_running, state.is_open(EVENTS[2]), state.is_open(EVENTS[3])) == (True, True, False)
    state.append(EVENTS[5])
    assert (state.is_running, state.is_open(EVENTS[2])) == (False, False)
    assert not state.is_open(Interval(7, None, 0, 20, RATE, 1))


def test_forks_change_with_their_events() -> None:
    state = StudyState.of(EVENTS)
    assert state.changed_forks(0) == [0, 1, 2]
    assert state.changed_forks(9) == [2]
    assert state.changed_forks(len(EVENTS)) == []


def test_the_states_that_a_journal_names() -> None:
    state = StudyState.of(
        [
            Created({"tasks": ["a", "b"]}),
            Interval(0, None, 0, 10, RATE, 1),
            Report(0, 0, 10, (4, 10), {"raw": (1.0, 2.0)}, kept=4),
            Interval(5, 0, 10, 20, RATE, 2),
        ]
    )
    named = {(fork, step) for fork in range(8) for step in range(30) if state.names(fork, step)}
    assert named == {(0, 0), (1, 0), (0, 4), (0, 10), (5, 20)}
