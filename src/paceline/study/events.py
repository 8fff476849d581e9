"""The events of a journal, as frozen values that go to JSON and back. docs/journal.md says what each means."""

import math
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from paceline.errors import JournalError
from paceline.traces import Schedule

FORMAT = 1
Values = dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    event: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Created(Event):
    """The study was asked for."""

    event: ClassVar[str] = "created"
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proposed(Event):
    """A fork is to run from `start` to `stop`, cloned from `parent` where that is given."""

    event: ClassVar[str] = "proposed"
    fork: int
    parent: int | None
    start: int
    stop: int
    schedule: Schedule
    round: int
    task: int = 0


@dataclass(frozen=True, slots=True)
class Cloned(Event):
    """A fork began as a clone of another."""

    event: ClassVar[str] = "cloned"
    fork: int
    parent: int
    step: int


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """One interval of a fork is done."""

    event: ClassVar[str] = "observed"
    fork: int
    start: int
    stop: int
    steps: tuple[int, ...]
    values: Values


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """One interval of a fork was not finished, or went wrong."""

    event: ClassVar[str] = "failed"
    fork: int
    start: int
    step: int
    reason: str
    steps: tuple[int, ...]
    values: Values


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A fork will not go on."""

    event: ClassVar[str] = "dropped"
    fork: int
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """What to do next, and why."""

    event: ClassVar[str] = "decided"
    round: int
    step: int
    reasons: tuple[str, ...]
    details: dict[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The study is over."""

    event: ClassVar[str] = "finished"
    fork: int | None
    step: int
    value: float | None
    of: str


EVENTS: dict[str, type[Event]] = {
    kind.event: kind for kind in (Created, Proposed, Cloned, Observed, Failed, Dropped, Decided, Finished)
}


def to_json(event: Event) -> dict[str, Any]:
    """Plain data; numbers that are not finite become None, and what is as usual is left out."""
    values = {f.name: getattr(event, f.name) for f in fields(event)}
    said = {f.name: values[f.name] for f in fields(event) if f.default is MISSING or values[f.name] != f.default}
    return {"event": event.event, **{name: _plain(value) for name, value in said.items()}}


def from_json(data: dict[str, Any]) -> Event:
    """The event that `to_json` wrote."""
    kind = EVENTS.get(str(data.get("event")))
    if kind is None:
        raise JournalError(f"unknown event {data.get('event')!r}: expected one of {', '.join(EVENTS)}")
    given: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in data and field.default is not MISSING:
            continue
        if field.name not in data:
            raise JournalError(f"event {kind.event!r} lacks the field {field.name!r}")
        value = data[field.name]
        if field.name == "schedule":
            value = Schedule.from_json(value)
        elif field.name in ("steps", "reasons"):
            value = tuple(value)
        elif field.name == "values":
            value = {of: tuple(math.nan if x is None else float(x) for x in column) for of, column in value.items()}
        given[field.name] = value
    return kind(**given)


def _plain(value: Any) -> Any:
    """Lists, dicts, strings, numbers and None only."""
    if isinstance(value, Schedule):
        return value.to_json()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
