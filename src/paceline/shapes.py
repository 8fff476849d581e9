"""Base shapes: the usual schedules, as a factor of the peak rate.

A shape is a frozen dataclass with a `name` and one method, `factor(step, steps)`, positive on 0 <= step < steps. Shapes
compare, hash and convert to JSON, because journals store them. The shapes in `SHAPES` can be read back from JSON.

>>> from paceline import Schedule
>>> Schedule.of(Exponential(final=0.1), peak=1.0, steps=100)(50)
0.31622776601683794
"""

from abc import ABC, abstractmethod
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from itertools import pairwise
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError
from paceline.json_fields import MAX_COUNT, FieldError, Range, check_field, checks_of, shown

MAX_JOINED = 32  # shapes joined to joined shapes: as often may a run go back
MAX_POWER = 100.0
Steps = Float[np.ndarray, "..."]


class Shape(ABC):
    """The learning rate over a run, as a factor of its peak."""

    name: ClassVar[str]

    @abstractmethod
    def factor(self, step: Steps, steps: int) -> Steps:
        """The factor at each step.

        Args:
            step: number of the update, from 0.
            steps: length of the run.

        Returns:
            Factors in (0, 1].
        """

    def to_json(self) -> dict[str, Any]:
        """The shape as plain data; `shape_from_json` reads it."""
        return {"name": self.name, **asdict(self)}  # pyright: ignore[reportArgumentType,reportUnknownVariableType]


def _check_fraction(shape: str, field: str, value: float, low: float, high: float) -> None:
    if not isinstance(value, Real) or not low <= value <= high:
        raise InputError(f"{shape}.{field} must lie in [{low:g}, {high:g}], got {shown(value)}: pass a fraction")


@dataclass(frozen=True, slots=True)
class Constant(Shape):
    """The same rate at every step. With multipliers on intervals, this is the paper's piecewise-constant rate."""

    name: ClassVar[str] = "constant"

    def factor(self, step: Steps, steps: int) -> Steps:
        return np.ones_like(step)


@dataclass(frozen=True, slots=True)
class Linear(Shape):
    """A straight line from the peak to `final` times the peak."""

    name: ClassVar[str] = "linear"
    final: float = 0.0

    def __post_init__(self) -> None:
        _check_fraction("Linear", "final", self.final, 0.0, 1.0)

    def factor(self, step: Steps, steps: int) -> Steps:
        return 1.0 - (1.0 - self.final) * step / steps


@dataclass(frozen=True, slots=True)
class Cosine(Shape):
    """Half a cosine from the peak to `final` times the peak."""

    name: ClassVar[str] = "cosine"
    final: float = 0.0

    def __post_init__(self) -> None:
        _check_fraction("Cosine", "final", self.final, 0.0, 1.0)

    def factor(self, step: Steps, steps: int) -> Steps:
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + np.cos(np.pi * step / steps))


@dataclass(frozen=True, slots=True)
class Exponential(Shape):
    """Exponential decay: the rate falls by the same ratio at each step, to `final` times the peak."""

    name: ClassVar[str] = "exponential"
    final: float = 0.01

    def __post_init__(self) -> None:
        _check_fraction("Exponential", "final", self.final, 1e-300, 1.0)

    def factor(self, step: Steps, steps: int) -> Steps:
        return self.final ** (step / steps)


@dataclass(frozen=True, slots=True)
class WarmupStableDecay(Shape):
    """Linear warm-up, constant peak, then decay to `final` times the peak.

    Args:
        warmup: share of the run that warms up.
        decay: share of the run that decays, at its end.
        final: rate at the end, as a factor of the peak.
        power: exponent of the decay: 1 is a straight line, 2 falls faster at first.
    """

    name: ClassVar[str] = "warmup_stable_decay"
    warmup: float = 0.02
    decay: float = 0.2
    final: float = 0.0
    power: float = 1.0

    def __post_init__(self) -> None:
        for field in ("warmup", "decay", "final"):
            _check_fraction("WarmupStableDecay", field, getattr(self, field), 0.0, 1.0)
        _check_fraction("WarmupStableDecay", "power", self.power, 0.0, MAX_POWER)
        if self.warmup + self.decay > 1.0:
            raise InputError(
                f"WarmupStableDecay: warmup + decay must be at most 1, got {self.warmup} + {self.decay}: shorten one"
            )

    def factor(self, step: Steps, steps: int) -> Steps:
        rise = np.minimum(1.0, (step + 1.0) / max(self.warmup * steps, 1.0))
        left = np.minimum(1.0, (1.0 - step / steps) / max(self.decay, 1.0 / steps))
        return rise * (self.final + (1.0 - self.final) * left**self.power)


HOLD_THEN_DECAY = WarmupStableDecay(warmup=0.02, decay=0.7)  # the default base of tuning and planning


@dataclass(frozen=True, slots=True)
class OneCycle(Shape):
    """A cosine from `start` up to the peak over the first `warmup` of the run, then a cosine down to `final`."""

    name: ClassVar[str] = "one_cycle"
    warmup: float = 0.3
    start: float = 0.04
    final: float = 4e-6

    def __post_init__(self) -> None:
        _check_fraction("OneCycle", "warmup", self.warmup, 0.0, 1.0)
        _check_fraction("OneCycle", "start", self.start, 1e-300, 1.0)
        _check_fraction("OneCycle", "final", self.final, 0.0, 1.0)

    def factor(self, step: Steps, steps: int) -> Steps:
        turn = self.warmup * steps
        rising = 0.5 * (1.0 - np.cos(np.pi * np.minimum(1.0, step / max(turn, 1e-12))))
        falling = 0.5 * (1.0 + np.cos(np.pi * np.clip((step - turn) / max(steps - turn, 1e-12), 0.0, 1.0)))
        up = self.start + (1.0 - self.start) * rising
        down = self.final + (1.0 - self.final) * falling
        return np.where(step < turn, up, down)


@dataclass(frozen=True, slots=True)
class Recorded(Shape):
    """Factors from a log, interpolated geometrically; constant before the first row and after the last."""

    name: ClassVar[str] = "recorded"
    steps: tuple[int, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.factors) or not self.steps:
            raise InputError(
                f"Recorded needs as many factors as steps, got {len(self.steps)} and {len(self.factors)}: pair them up"
            )
        if not all(f > 0 and np.isfinite(f) for f in self.factors):
            raise InputError("Recorded factors must lie in (0, inf): drop the rows where the rate is zero")

    def factor(self, step: Steps, steps: int) -> Steps:
        return np.exp(np.interp(step, self.steps, np.log(self.factors)))


@dataclass(frozen=True, slots=True)
class Joined(Shape):
    """The beginning of a run of one length, and the rest of one of another length: what a run that goes back has.

    Args:
        first: the shape before step `at`.
        first_steps: length of the run that it is the beginning of.
        at: the step at which they join.
        then: the shape from there on.
    """

    name: ClassVar[str] = "joined"
    first: Shape
    first_steps: Annotated[int, Range(1, MAX_COUNT)]
    at: int
    then: Shape

    def factor(self, step: Steps, steps: int) -> Steps:
        before = self.first.factor(np.minimum(step, self.at), self.first_steps)
        return np.where(step < self.at, before, self.then.factor(step, steps))

    def to_json(self) -> dict[str, Any]:
        """The shape as plain data; `shape_from_json` reads it."""
        shapes = {"first": self.first.to_json(), "then": self.then.to_json()}
        return {"name": self.name, "first_steps": self.first_steps, "at": self.at, **shapes}


SHAPES: dict[str, type[Shape]] = {
    shape.name: shape
    for shape in (Constant, Linear, Cosine, Exponential, WarmupStableDecay, OneCycle, Recorded, Joined)
}
_WITHOUT_DEFAULTS = {Recorded.name, Joined.name}


def shape_of(shape: "str | Shape") -> Shape:
    """The shape itself, or the shape with this name: `shape_of("cosine")`."""
    if isinstance(shape, Shape):
        return shape
    if shape not in SHAPES or shape in _WITHOUT_DEFAULTS:
        names = ", ".join(sorted(set(SHAPES) - _WITHOUT_DEFAULTS))
        raise InputError(f"unknown base shape {shape!r}: use one of {names}, or a Shape")
    return SHAPES[shape]()


def shape_from_json(data: Any, depth: int = MAX_JOINED) -> Shape:
    """The shape that `Shape.to_json` wrote. A field of another type or range is an error.

    Args:
        data: plain data, perhaps of a stranger.
        depth: how often shapes may be joined to joined ones.
    """
    given: dict[str, Any] = data
    if type(given) is not dict or type(given.get("name")) is not str:
        raise FieldError("a base shape with a name", data)
    if given["name"] not in SHAPES:
        raise InputError(f"unknown base shape {shown(given['name'])} in JSON: expected one of {sorted(SHAPES)}")
    if depth == 0:
        raise FieldError(f"joined at most {MAX_JOINED} times", given)
    shape = SHAPES[given["name"]]
    known, required = _fields_of(shape)
    if len(given) == 1 and not required:
        return _with_defaults(shape)
    if not required <= given.keys() <= {*known, "name"}:
        raise FieldError(f"a {given['name']} shape with {', '.join(known) or 'no fields'}", given)
    values = {name: _read_field(shape, name, given[name], depth) for name in known if name in given}
    return shape(**values)


@cache
def _with_defaults(shape: type[Shape]) -> Shape:
    """The one shape that all schedules with this base share."""
    return shape()


@cache
def _fields_of(shape: type[Shape]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The fields of a shape, and those without a default."""
    known = fields(shape)  # pyright: ignore[reportArgumentType]
    return tuple(f.name for f in known), frozenset(f.name for f in known if f.default is MISSING)


def _read_field(shape: type[Shape], name: str, value: Any, depth: int) -> Any:
    if shape is Joined and name in ("first", "then"):
        return check_field(lambda each: shape_from_json(each, depth - 1), name, value)
    read = check_field(checks_of(shape)[name], name, value)
    if shape is Recorded and name == "steps" and any(b < a for a, b in pairwise(read)):
        raise FieldError("steps that never decrease", value, (name,))
    return read
