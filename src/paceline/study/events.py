"""The events of a journal, as frozen values that go to JSON and back. docs/journal.md says what each means.

`Interval` and `Report` are the unit of work everywhere: a strategy proposes intervals, a runner trains them and returns
reports, and the journal holds both.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar

from paceline.errors import JournalError
from paceline.json_fields import (
    Check,
    FieldError,
    Name,
    Range,
    check_field,
    check_of,
    checks_of,
    list_of,
    plain_data,
    shown,
)
from paceline.study.reasons import Failure, Reason
from paceline.study.recorded_fields import read_details, read_settings_fields
from paceline.traces import Schedule

FORMAT = 3
MAX_SECONDS = 1e10
MAX_SHARED = 1_000  # steps of an interval that are kept to be shared
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
        spent: wall seconds of the study so far, by what they were spent on.
    """

    name: ClassVar[str] = "decided"
    round: int
    step: int
    reasons: tuple[Reason, ...] = ()
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: Annotated[float, Range(0, MAX_SECONDS)] = 0.0
    spent: dict[str, Annotated[float, Range(0, MAX_SECONDS)]] = field(
        default_factory=dict[str, float], compare=False, repr=False
    )


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
    weights: Name
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
    written = {f.name: values[f.name] for f in fields(event) if f.name in _ALWAYS or values[f.name] != _default(f)}
    return {"event": event.kind, **{name: _plain(value) for name, value in written.items()}}


def _default(of: Field[Any]) -> Any:
    """The default of a field; `MISSING` if it has none."""
    return of.default if of.default_factory is MISSING else of.default_factory()


def from_json(data: dict[str, Any]) -> Event:
    """The event that `to_json` wrote. A field of another type or range is an error that names it."""
    kind = data.get("event")
    cls = EVENTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise JournalError(f"unknown event {shown(kind)}: expected one of {', '.join(EVENTS)}")
    try:
        event = cls(**_arguments(cls, kind, data))
        _check_order(event)
    except FieldError as error:
        raise JournalError(f"event {kind!r}: {error}: the journal was edited or damaged, restore it") from error
    return event


def _arguments(cls: type[Event], kind: Any, data: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, each checked."""
    arguments: dict[str, Any] = {}
    name = ""
    try:
        for name, check, is_required in _checks(cls):
            if name in data:
                arguments[name] = check(data[name])
            elif is_required:
                raise JournalError(f"event {kind!r} lacks the field {name!r}")
    except FieldError as error:
        raise error.inside(name) from None
    return arguments


@cache
def _checks(cls: type[Event]) -> list[tuple[str, Check, bool]]:
    """Name and check of each field of an event, and whether it must be there."""
    checks = {**checks_of(cls), **_READERS}
    required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    return [(f.name, checks[f.name], f.name in required) for f in fields(cls)]


def _check_order(event: Event) -> None:
    """Steps of one event that must follow each other, and columns that belong together."""
    if type(event) is Report:
        _check_report(event)
    elif type(event) is Interval and event.start >= event.stop:
        raise FieldError(f"a step after its start, {event.start:,}", event.stop, ("stop",))


def _check_report(report: Report) -> None:
    steps = report.steps
    if report.start > report.stop:
        raise FieldError(f"a step after its start, {report.start:,}", report.stop, ("stop",))
    for weights, column in report.values.items():
        if len(column) != len(steps):
            raise FieldError(f"a list as long as steps, {len(steps):,}", [*column], ("values", weights))
    if report.kept is not None and report.kept not in steps:
        raise FieldError("one of its steps", report.kept, ("kept",))


def _read_steps(data: Any) -> tuple[int, ...]:
    steps = _read_counts(data)
    shared = _increasing(steps) if len(steps) <= MAX_SHARED else _increasing.__wrapped__(steps)
    if shared is None:
        raise FieldError("steps that increase", data)
    return shared


@lru_cache
def _increasing(steps: tuple[int, ...]) -> tuple[int, ...] | None:
    """The steps, which reports on the intervals of a round share; None if they do not increase."""
    return steps if sorted({*steps}) == [*steps] else None


def _read_value(value: Any) -> float:
    return math.nan if value is None else _read_number(value)  # one that was not finite is null


_read_name, _read_number, _read_counts = check_of(Name), check_of(float), check_of(tuple[int, ...])
_read_column = list_of(_read_value, as_tuple=True, kind=float)


def _read_values(columns: Any) -> Values:
    given: dict[str, Any] = columns
    if type(given) is not dict:
        raise FieldError("an object with a list of values for each kind of weights", columns)
    return {_read_name(weights): check_field(_read_column, weights, column) for weights, column in given.items()}


def _read_reasons(data: Any) -> tuple[Reason, ...]:
    return _reason_list(plain_data(data))  # not too deep, before it is read level by level


_reason_list = check_of(tuple[Reason, ...])
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "settings": read_settings_fields,
    "steps": _read_steps,
    "values": _read_values,
    "details": read_details,
    "reason": lambda data: Reason.from_json(plain_data(data)),
    "reasons": _read_reasons,
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
