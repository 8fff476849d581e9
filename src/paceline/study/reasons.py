"""Why something was decided, and how an interval failed: a kind and the numbers that belong to it.

Programs compare kinds and numbers. `paceline.study.wording` is the one place that turns them into English.
"""

import math
from dataclasses import dataclass, field
from typing import Any, cast

from paceline.errors import InputError
from paceline.json_fields import FieldError, Name, check_field, check_of, checks_of
from paceline.study.recorded_fields import reason_check

FAILURE_KINDS = ("diverged", "not finite", "raised", "lost", "out of memory", "no space", "turned")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided.

    Args:
        kind: what sort of reason it is: a key of `wording.SENTENCES`, or "text" for a sentence of the user's own.
        data: its numbers and names, as plain data.
    """

    kind: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, name: str) -> Any:
        """One of its numbers."""
        return self.data[name]

    def __str__(self) -> str:
        """The sentence."""
        from paceline.study.wording import describe

        return describe(self)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, **{name: _reason_to_json(value) for name, value in self.data.items()}}

    @classmethod
    def from_json(cls, data: Any) -> "Reason":
        """The reason that `to_json` wrote. A field of another type or range is an error."""
        if type(data) is not dict or "kind" not in data:
            raise FieldError("a reason with a kind", data)
        fields = dict(cast("dict[str, Any]", data))
        kind = check_field(_read_name, "kind", fields.pop("kind"))
        return cls(kind, {name: _read_field(kind, name, value) for name, value in fields.items()})


_read_name = check_of(Name)


def _read_field(kind: str, name: str, value: Any) -> Any:
    check = reason_check(kind, name)
    is_reason = type(value) is dict and "kind" in value
    return check_field(Reason.from_json if is_reason else check, name, value)


def because(kind: str, **data: Any) -> Reason:
    """A reason of this kind, with numbers as JSON holds them: NumPy's become Python's, and NaN becomes None.

    >>> because("clone", fork=8, parent=5, rate=0.1).data
    {'fork': 8, 'parent': 5, 'rate': 0.1}
    """
    return Reason(kind, {name: _plain(value) for name, value in data.items()})


def as_reason(reason: "Reason | str") -> Reason:
    """A reason; a sentence is one of kind "text"."""
    return because("text", text=reason) if isinstance(reason, str) else reason


@dataclass(frozen=True, slots=True)
class Failure:
    """How an interval failed.

    Args:
        kind: "diverged" (a value too large to learn from, or finite and so bad that the run is lost), "not finite",
            "raised" (an exception of the training), "lost" (its workers died), "out of memory", "no space" (on the
            disk), or "turned": no fault, its values have turned for the worse for good, and it was ended there.
        message: what the exception said, or the user; how bad the values are if they are finite and diverged.
        place: file and line of the user's code that raised it.
        step: the step of the value that is not finite or too large; of the best value if it turned.
        traceback: that of the exception, as text.
        error: the exception itself, while the process that caught it lives; not kept in the journal.
    """

    kind: str
    message: str = ""
    place: str = ""
    step: int | None = None
    traceback: str = field(default="", compare=False, repr=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in FAILURE_KINDS:
            raise InputError(f"a failure's kind must be one of {', '.join(FAILURE_KINDS)}, got {self.kind!r}")

    @property
    def is_unsound_value(self) -> bool:
        """Whether the training reported a value that cannot be learnt from, rather than breaking."""
        return self.kind in ("diverged", "not finite")

    @property
    def is_turn(self) -> bool:
        """Whether the run was ended early because it got worse, rather than failing."""
        return self.kind == "turned"

    def to_json(self) -> dict[str, Any]:
        """Plain data, without what is empty."""
        fields = {
            "kind": self.kind,
            "message": self.message,
            "place": self.place,
            "step": self.step,
            "traceback": self.traceback,
        }
        return {name: value for name, value in fields.items() if value not in ("", None)}

    @classmethod
    def from_json(cls, data: Any) -> "Failure":
        """The failure that `to_json` wrote. A field of another type or range is an error."""
        if type(data) is not dict or "kind" not in data:
            raise FieldError("a failure with a kind", data)
        given, checks = cast("dict[str, Any]", data), checks_of(cls)
        read = {name: check_field(checks[name], name, given[name]) for name in _FAILURE_FIELDS if name in given}
        if read["kind"] not in FAILURE_KINDS:
            raise FieldError(f"one of {', '.join(FAILURE_KINDS)}", read["kind"], ("kind",))
        return cls(**read)


_FAILURE_FIELDS = ("kind", "message", "place", "step", "traceback")


def as_failure(failure: "Failure | str") -> Failure:
    """A failure; a sentence is the message of one that was raised."""
    return Failure("raised", failure) if isinstance(failure, str) else failure


def _plain(value: Any) -> Any:
    if isinstance(value, Reason) or value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    number: Any = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return number


def _reason_to_json(value: Any) -> Any:
    return value.to_json() if isinstance(value, Reason) else value
