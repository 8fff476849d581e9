"""The events of a journal, as frozen values that go to JSON and back. docs/journal.md says what each means.

`Interval` and `Report` are the unit of work everywhere: a strategy proposes intervals, a runner trains them and returns
reports, and the journal holds both.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from paceline.errors import JournalError
from paceline.study.reasons import Failure, Reason
from paceline.traces import Schedule

FORMAT = 2
Values = dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    name: ClassVar[str]

    @property
    def kind(self) -> str:
        """Its name in the journal."""
        return self.name


@dataclass(frozen=True, slots=True)
class Created(Event):
    """The study was set up."""

    name: ClassVar[str] = "created"
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Interval(Event):
    """Train `fork` from step `start` to step `stop` at the rates of `schedule`.

    Args:
        fork: number of the fork.
        parent: the fork whose state at `start` it begins from as a clone; None if it goes on, or begins at step 0.
        start: updates done at its beginning.
        stop: updates done at its end.
        schedule: the learning rate, from step 0 of the run.
        round: number of the decision that proposed it, from 1.
        task: number of the fork's task in a family.
    """

    name: ClassVar[str] = "proposed"
    fork: int
    parent: int | None
    start: int
    stop: int
    schedule: Schedule
    round: int
    task: int = 0

    @property
    def origin(self) -> tuple[int, int]:
        """Fork and step of the state it begins from; (m, 0) is where runs of task m begin."""
        if self.start == 0:
            return self.task, 0
        return (self.fork if self.parent is None else self.parent), self.start

    @property
    def multiplier(self) -> float:
        """The multiplier of the base that it runs at; the rate itself if the base is constant."""
        return float(self.schedule.multipliers[-1])


@dataclass(frozen=True, slots=True)
class Report(Event):
    """What an interval of a fork showed.

    Args:
        fork: number of the fork.
        start: updates done at its beginning.
        stop: updates done at its end, or at the last observation if it failed.
        steps: when values were observed.
        values: one value per step under "raw", "averaged", or both.
        failure: how it failed, None if it reached its end.
        kept: the step of the best observation so far on its path, if it is one of these and its state was kept.
    """

    fork: int
    start: int
    stop: int
    steps: tuple[int, ...]
    values: Values
    failure: Failure | None = None
    kept: int | None = None

    @property
    def kind(self) -> str:
        """Its name in the journal."""
        return "observed" if self.failure is None else "failed"


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A fork will not go on."""

    name: ClassVar[str] = "dropped"
    fork: int
    step: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """What to do next, and why.

    Args:
        round: number of the decision, from 1.
        step: updates done by the forks it is about.
        reasons: why.
        details: numbers for views, as docs/journal.md lists them.
        seconds: how long the strategy took.
    """

    name: ClassVar[str] = "decided"
    round: int
    step: int
    reasons: tuple[Reason, ...] = ()
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The study is over.

    Args:
        fork: the winner, None if there is none.
        step: length of a run; if the best weights were kept, the step they were observed at.
        value: the winner's value at that step.
        weights: the weights that the value is of.
        last: the winner's value at the end of its run, if the best weights were kept.
    """

    name: ClassVar[str] = "finished"
    fork: int | None
    step: int
    value: float | None
    weights: str
    last: float | None = None


EVENTS: dict[str, type[Event]] = {
    "created": Created,
    "proposed": Interval,
    "observed": Report,
    "failed": Report,
    "dropped": Dropped,
    "decided": Decided,
    "finished": Finished,
}
_ALWAYS = ("reasons", "details", "seconds")  # written even if they are empty


def to_json(event: Event) -> dict[str, Any]:
    """Plain data. Numbers that are not finite become None, and default values are omitted."""
    values = {f.name: getattr(event, f.name) for f in fields(event)}
    written = {
        f.name: values[f.name]
        for f in fields(event)
        if f.name in _ALWAYS or f.default is MISSING or values[f.name] != f.default
    }
    return {"event": event.kind, **{name: _plain(value) for name, value in written.items()}}


def from_json(data: dict[str, Any]) -> Event:
    """The event that `to_json` wrote."""
    cls = EVENTS.get(str(data.get("event")))
    if cls is None:
        raise JournalError(f"unknown event {data.get('event')!r}: expected one of {', '.join(EVENTS)}")
    arguments: dict[str, Any] = {}
    for f in fields(cls):
        if f.name in data:
            arguments[f.name] = _READERS[f.name](data[f.name]) if f.name in _READERS else data[f.name]
        elif f.default is MISSING and f.default_factory is MISSING:
            raise JournalError(f"event {data['event']!r} lacks the field {f.name!r}")
    return cls(**arguments)


def _read_values(columns: Any) -> Values:
    return {
        weights: tuple(math.nan if value is None else float(value) for value in column)
        for weights, column in columns.items()
    }


def _read_reasons(reasons: list[dict[str, Any]]) -> tuple[Reason, ...]:
    return tuple(Reason.from_json(reason) for reason in reasons)


_READERS: dict[str, Callable[[Any], Any]] = {
    "schedule": Schedule.from_json,
    "steps": tuple,
    "values": _read_values,
    "reasons": _read_reasons,
    "reason": Reason.from_json,
    "failure": Failure.from_json,
}


def _plain(value: Any) -> Any:
    """Lists, dicts, strings, numbers and None only."""
    if isinstance(value, Schedule | Reason | Failure):
        return _plain(value.to_json())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
