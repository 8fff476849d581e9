"""What the events of a study add up to. This is the only module that interprets a journal.

The tuner's history, figures, tables, the page and loggers are projections of a `StudyState`. It holds numbers of
events, by fork and by decision, and needs little more than a kind and a few integers of each event (its `Head`). So the
same code follows a study that is being tuned, one that is read whole, and one whose journal does not fit into memory.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from paceline.errors import JournalError
from paceline.study.events import Created, Decided, Dropped, Event, Finished, Interval, Report

E = TypeVar("E", bound=Event)


class Head(NamedTuple):
    """What the state needs of an event; None for what the event does not have."""

    kind: str
    fork: int | None = None
    parent: int | None = None
    start: int | None = None
    stop: int | None = None


def head_of(event: Event) -> Head:
    """The head of an event."""
    match event:
        case Interval():
            return Head(event.name, event.fork, event.parent, event.start, event.stop)
        case Report():
            return Head(event.kind, event.fork, None, event.start, event.stop)
        case Dropped():
            return Head(event.name, event.fork)
        case _:
            return Head(event.name)


@dataclass(slots=True)
class ForkState:
    """One fork so far.

    Args:
        id: its number.
        parent: the fork it was cloned from.
        start: the step it begins at.
        step: the step it has reached.
        intervals: numbers of its `Interval` events.
        reports: numbers of its `Report` events; one fewer while an interval is running.
        failed: whether its last report is a failure.
        dropped: number of its `Dropped` event.
    """

    id: int
    parent: int | None
    start: int
    step: int
    intervals: list[int] = field(default_factory=list[int])
    reports: list[int] = field(default_factory=list[int])
    failed: bool = False
    dropped: int | None = None

    @property
    def running(self) -> bool:
        """Whether an interval of it has not been reported on yet."""
        return len(self.intervals) > len(self.reports)

    @property
    def alive(self) -> bool:
        """Whether it may go on."""
        return self.dropped is None and not self.failed


@dataclass(slots=True)
class DecisionState:
    """One decision: numbers of the event itself, of the intervals it proposed and of the forks it dropped.

    `done_steps` counts the steps of all forks before it.
    """

    event: int
    done_steps: int
    intervals: list[int] = field(default_factory=list[int])
    dropped: list[int] = field(default_factory=list[int])


class StudyState:
    """A study so far.

    Args:
        log: the events by number, if they are kept elsewhere, such as in a file; `add` then takes their heads.

    Attributes:
        events: all events by number.
        forks: the forks by number.
        decisions: the decisions, in order.
        report_numbers: numbers of all `Report` events.
        done_steps: steps of all forks together.
    """

    def __init__(self, log: Sequence[Event | None] | None = None) -> None:
        self._own_events = list[Event]()
        self.events: Sequence[Event | None] = self._own_events if log is None else log
        self.forks: dict[int, ForkState] = {}
        self.decisions: list[DecisionState] = []
        self.report_numbers: list[int] = []
        self.done_steps = 0
        self.count = 0
        self._finished: int | None = None
        self._open: dict[int, int] = {}  # the interval of each fork that is running, in the order of the intervals

    @classmethod
    def of(cls, events: Iterable[Event]) -> "StudyState":
        """The state after these events."""
        state = cls()
        for event in events:
            state.append(event)
        return state

    def append(self, event: Event) -> None:
        """Add the next event and keep it."""
        self.add(event)
        self._own_events.append(event)

    def add(self, head: Head | Event) -> None:
        """Add the next event by its head. An event has all that its head has."""
        number = self.count
        try:
            self._fold(number, head.kind, head)
        except (KeyError, IndexError) as error:
            raise JournalError(
                f"event {number} ({head.kind}) does not follow from those before it ({_problem(error)}): "
                "the journal was edited, restore it"
            ) from error
        self.count += 1

    def _fold(self, number: int, kind: str, head: Any) -> None:
        match kind:
            case "decided":
                self.decisions.append(DecisionState(number, self.done_steps))
            case "proposed":
                fork_number = _given(head.fork, "fork")
                fork = self.forks.get(fork_number)
                if fork is None:
                    if head.parent is not None:
                        _ = self.forks[head.parent]  # an older one, so nobody descends from himself
                    start = _given(head.start, "start")
                    fork = self.forks[fork_number] = ForkState(fork_number, head.parent, start, start)
                fork.intervals.append(number)
                self._open.pop(fork.id, None)
                self._open[fork.id] = number
                if self.decisions:
                    self.decisions[-1].intervals.append(number)
            case "observed" | "failed":
                fork = self.forks[_given(head.fork, "fork")]
                missing = len(fork.intervals) - len(fork.reports)
                if missing < 1:
                    raise KeyError(f"fork {fork.id} has no open interval")
                fork.reports.append(number)
                if missing == 1:
                    del self._open[fork.id]
                self.report_numbers.append(number)
                fork.step, fork.failed = _given(head.stop, "stop"), kind == "failed"
                self.done_steps += fork.step - _given(head.start, "start")
            case "dropped":
                fork = self.forks[_given(head.fork, "fork")]
                fork.dropped = number
                if self.decisions:
                    self.decisions[-1].dropped.append(fork.id)
            case "finished":
                self._finished = number
            case _:
                pass

    def changed_forks(self, since: int) -> list[int]:
        """Numbers of the forks that event `since` or a later one is about."""
        heads = (head_of(event) for event in self.events[since : self.count] if event is not None)
        return sorted({head.fork for head in heads if head.fork is not None})

    # the events behind the numbers

    def _event(self, number: int, kind: type[E]) -> E:
        event = self.events[number]
        if not isinstance(event, kind):
            raise JournalError(f"event {number} should be {kind.__name__}, got {event!r}: the journal was edited")
        return event

    @property
    def settings(self) -> dict[str, Any]:
        """What the study was set up with; empty before its first event."""
        first = self.events[0] if self.count else None
        return first.settings if isinstance(first, Created) else {}

    @property
    def finished(self) -> Finished | None:
        """How the study ended, None if it has not."""
        return None if self._finished is None else self._event(self._finished, Finished)

    @property
    def is_finished(self) -> bool:
        """Whether the study is over."""
        return self._finished is not None

    @property
    def running(self) -> list[Interval]:
        """Intervals without a report, in the order they were proposed."""
        return [self._event(number, Interval) for number in self._open.values()]

    @property
    def is_running(self) -> bool:
        """Whether an interval has no report yet."""
        return bool(self._open)

    def is_open(self, interval: Interval) -> bool:
        """Whether this interval has no report yet."""
        number = self._open.get(interval.fork)
        return number is not None and self._event(number, Interval) == interval

    def intervals(self, fork: ForkState) -> list[Interval]:
        """The intervals of a fork, in order."""
        return [self._event(number, Interval) for number in fork.intervals]

    def reports(self, fork: ForkState) -> list[Report]:
        """The reports of a fork, in order."""
        return [self._event(number, Report) for number in fork.reports]

    def first_interval(self, fork: ForkState) -> Interval:
        """The first interval of a fork."""
        return self._event(fork.intervals[0], Interval)

    def latest_interval(self, fork: ForkState) -> Interval:
        """The latest interval of a fork: its schedule is the fork's."""
        return self._event(fork.intervals[-1], Interval)

    def report_on(self, interval: int) -> Report | None:
        """The report on the interval with this event number, None if there is none yet."""
        fork = self.forks[self._event(interval, Interval).fork]
        position = bisect_left(fork.intervals, interval)
        return self._event(fork.reports[position], Report) if position < len(fork.reports) else None

    def interval(self, number: int) -> Interval:
        """The interval with this event number."""
        return self._event(number, Interval)

    def report(self, number: int) -> Report:
        """The report with this event number."""
        return self._event(number, Report)

    def drop_of(self, fork: ForkState) -> Dropped | None:
        """Why a fork was dropped, None if it was not."""
        return None if fork.dropped is None else self._event(fork.dropped, Dropped)

    def decided(self, decision: DecisionState) -> Decided:
        """The event of a decision."""
        return self._event(decision.event, Decided)

    def names(self, fork: int, step: int) -> bool:
        """Whether an event names this state: the start of a task, an end of an interval, or a best moment."""
        if step == 0:
            return fork < max(1, len(self.settings.get("tasks", ())))
        own = self.forks.get(fork)
        if own is None:
            return False
        ends = {interval.stop for interval in self.intervals(own)}
        return step in ends or any(report.kept == step for report in self.reports(own))

    @property
    def round(self) -> int:
        """The number of the latest decision that proposed an interval; 0 before the first."""
        numbers = next((decision.intervals for decision in reversed(self.decisions) if decision.intervals), None)
        return 0 if numbers is None else self.interval(numbers[0]).round

    @property
    def latest_decision(self) -> Decided | None:
        """The latest decision."""
        return self.decided(self.decisions[-1]) if self.decisions else None

    def decisions_before(self, end: int) -> list[DecisionState]:
        """The decisions before event `end`, in order."""
        return self.decisions[: bisect_left(self.decisions, end, key=lambda decision: decision.event)]

    def latest_detail(self, name: str, end: int | None = None, most: int | None = None) -> list[dict[str, Any]]:
        """This field of the details of the latest decision that has it; empty if none has.

        Args:
            name: the field.
            end: only decisions before this event are read.
            most: only so many decisions are read, the latest.
        """
        decisions = self.decisions_before(self.count if end is None else end)
        for decision in reversed(decisions if most is None else decisions[-most:]):
            details = self.decided(decision).details
            if name in details:
                return details[name]
        return []


def _given(value: int | None, name: str) -> int:
    if value is None:
        raise KeyError(f"it lacks {name!r}")
    return value


def _problem(error: Exception) -> str:
    said = str(error.args[0]) if error.args else ""
    return said if isinstance(error.args[0], str) else f"there is no fork {error.args[0]}"
