"""A schedule: the learning rate as a function of the step.

The rate is a base shape times a multiplier that is constant on intervals. With the constant base it is the paper's
piecewise-constant rate. Schedules are immutable: `extend` and `join` return new ones.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from paceline.errors import InputError
from paceline.json_fields import FieldError, list_of, number, shown, whole_number
from paceline.shapes import Constant, Recorded, Shape, shape_from_json, shape_of

_FIELDS = {
    "steps": whole_number(1),
    "change_points": list_of(whole_number(), kind=int),
    "multipliers": list_of(number(), kind=float),
    "base": shape_from_json,
}
MAX_SHARED = 1_000  # change points that are kept to be shared
_set_field = object.__setattr__


@lru_cache
def _shared_points(points: tuple[int, ...]) -> Int[np.ndarray, "points"] | None:
    """Change points, which the schedules of a round have in common; None if they are not sound."""
    is_sound = len(points) > 1 and points[0] == 0 and sorted({*points}) == [*points]
    return _read_only(np.array(points)) if is_sound else None


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Schedule:
    """Learning rate gamma(t) = multipliers[k] * base(t) for change_points[k] <= t < change_points[k + 1].

    Args:
        multipliers: one positive number per interval; with the constant base these are the rates.
        change_points: T_0 = 0 < T_1 < ... in steps, one more than multipliers. If the last is before `steps`, the last
            multiplier holds to the end, until `extend` adds another.
        steps: length T of the run; by default the last change point.
        base: a `Shape`, or its name.

    >>> schedule = Schedule([1e-2, 1e-3], [0, 50, 100])
    >>> schedule(10), schedule(70)
    (0.01, 0.001)
    """

    multipliers: Float[np.ndarray, "intervals"]
    change_points: Int[np.ndarray, "intervals+1"]
    steps: int
    base: Shape

    def __init__(self, multipliers: Any, change_points: Any, steps: int = 0, base: "str | Shape" = "constant") -> None:
        points = np.asarray(change_points, dtype=float)
        rates = np.asarray(multipliers, dtype=float)
        if points.ndim != 1 or rates.ndim != 1 or len(points) != len(rates) + 1 or len(rates) == 0:
            raise InputError(
                f"a schedule of d intervals needs d multipliers and d + 1 change points, got {rates.size} and "
                f"{points.size}: start change_points with 0 and end with the last step"
            )
        if points[0] != 0 or (points[1:] - points[:-1] < 1).any() or (points != np.rint(points)).any():
            raise InputError(
                f"change points must be whole steps that start at 0 and increase, got {shown(points.tolist())}"
            )
        if not (rates.min() > 0 and rates.max() < np.inf):  # false for NaN too
            raise InputError(
                f"rates and multipliers must lie in (0, inf), got {shown(rates.tolist())}: use a small rate, not 0"
            )
        steps = int(steps) or int(points[-1])
        if steps < points[-1]:
            raise InputError(f"steps must reach the last change point {int(points[-1]):,}, got {steps:,}: raise it")
        self._set(_read_only(rates.copy()), _read_only(points.astype(int)), steps, shape_of(base))

    def _set(self, multipliers: np.ndarray, change_points: np.ndarray, steps: int, base: Shape) -> None:
        """Set fields that were checked."""
        _set_field(self, "multipliers", multipliers)
        _set_field(self, "change_points", change_points)
        _set_field(self, "steps", steps)
        _set_field(self, "base", base)

    @classmethod
    def of(cls, base: "str | Shape", peak: float, steps: int) -> "Schedule":
        """One shape from start to end: `Schedule.of("cosine", 1e-3, steps=1000)`."""
        return cls([peak], [0, steps], base=base)

    @classmethod
    def constant(cls, rate: float, steps: int) -> "Schedule":
        """The same rate at every step."""
        return cls([rate], [0, steps])

    @classmethod
    def from_table(cls, steps: Any, rates: Any) -> "Schedule":
        """The schedule of a logged run, which used `rates[i]` at `steps[i]`.

        If the rate changes rarely, the schedule is piecewise constant. Otherwise it interpolates the log.
        """
        at, rate = np.asarray(steps, dtype=float), np.asarray(rates, dtype=float)
        if at.shape != rate.shape or at.ndim != 1 or at.size == 0:
            raise InputError(f"steps and rates must be two columns of equal length, got {at.shape} and {rate.shape}")
        if not np.all(np.isfinite(at)) or np.any(np.diff(at) <= 0):
            raise InputError(
                "steps must be finite and increase from row to row: sort the table and drop repeated steps"
            )
        if not np.all(np.isfinite(rate) & (rate > 0)):
            raise InputError("rates must lie in (0, inf): drop the rows where the rate is zero or missing")
        end = max(int(at[-1]), 1)
        changes = 1 + np.flatnonzero(np.abs(np.diff(np.log(rate))) > 1e-9)
        if len(changes) > max(1, at.size // 8):
            return cls([1.0], [0, end], base=Recorded(tuple(int(s) for s in at), tuple(float(r) for r in rate)))
        inside = changes[(at[changes] > 0) & (at[changes] < end)]
        return cls(rate[np.concatenate([[0], inside])], np.concatenate([[0], at[inside], [end]]))

    def __call__(self, step: "int | float | Float[np.ndarray, '...'] | Int[np.ndarray, '...']") -> Any:
        """The rate of update number `step`, from 0; a float for a number, an array for an array.

        Before 0 it is the first rate, from `steps` on the last.
        """
        at = np.atleast_1d(np.clip(np.asarray(step, dtype=float), 0, self.steps - 1))
        rate = self.multiplier(at) * self.base.factor(at, self.steps)
        return rate if np.ndim(step) else float(rate[0])

    def multiplier(self, step: Any) -> Float[np.ndarray, "..."]:
        """The multiplier at a step."""
        interval = np.searchsorted(self.change_points, np.asarray(step, dtype=float), side="right") - 1
        return np.asarray(self.multipliers[np.clip(interval, 0, len(self.multipliers) - 1)])

    @property
    def tuned_base(self) -> "Shape | None":
        """The base whose multiplier was tuned; None if the rate itself was (constant or recorded base)."""
        return None if isinstance(self.base, Constant | Recorded) else self.base

    def mean_log10(self, start: int, stop: int, *, of_multiplier: bool = False) -> float:
        """Mean of log10 of the rate, or of the multiplier, over the steps start <= t < stop."""
        if of_multiplier or isinstance(self.base, Constant):
            inner = self.change_points[(self.change_points > start) & (self.change_points < stop)]
            edges = np.concatenate([[start], inner, [stop]])
            return float(np.average(np.log10(self.multiplier(edges[:-1])), weights=np.diff(edges)))
        count = min(stop - start, 64)
        middles = start + (np.arange(count) + 0.5) * (stop - start) / count - 0.5
        rates: Float[np.ndarray, "count"] = self(middles)
        return float(np.mean(np.log10(rates)))

    def extend(self, multiplier: float, stop: int) -> "Schedule":
        """The same schedule with one more interval, up to `stop`."""
        return Schedule(
            np.append(self.multipliers, multiplier),
            np.append(self.change_points, stop),
            max(self.steps, stop),
            self.base,
        )

    def with_last(self, multiplier: float) -> "Schedule":
        """The same schedule with another multiplier on its last interval."""
        return Schedule([*self.multipliers[:-1], multiplier], self.change_points, self.steps, self.base)

    def join(self, other: "Schedule", at: int) -> "Schedule":
        """This schedule before step `at`, the other one after it."""
        if not 0 < at < other.steps:
            raise InputError(f"schedules join at a step in 1..{other.steps - 1}, got {at}: pick a step inside the run")
        if self.base == other.base and (self.steps == other.steps or isinstance(self.base, Constant)):
            left, right = self.change_points[self.change_points < at], other.change_points[other.change_points > at]
            right = right if right.size else np.array([other.steps])
            values = np.concatenate([self.multiplier(left), other.multiplier(np.append(at, right[:-1]))])
            return Schedule(values, np.concatenate([left, [at], right]), other.steps, self.base)
        grid = np.unique(np.concatenate([np.linspace(0, other.steps - 1, 2048).round(), [at - 1, at]]))
        shape = Recorded(
            tuple(int(step) for step in grid), tuple((self if step < at else other)(step) for step in grid)
        )
        return Schedule([1.0], [0, other.steps], base=shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.steps, self.base, self.multipliers.tobytes(), self.change_points.tobytes()))

    def to_json(self) -> dict[str, Any]:
        """The schedule as plain data; `from_json` returns an equal schedule."""
        return {
            "steps": self.steps,
            "change_points": self.change_points.tolist(),
            "multipliers": self.multipliers.tolist(),
            "base": self.base.to_json(),
        }

    @classmethod
    def from_json(cls, data: Any) -> "Schedule":
        """The schedule that `to_json` wrote. A field of another type or range is an error."""
        given: dict[str, Any] = data
        if type(given) is not dict:
            raise FieldError("a schedule", data)
        if not given.keys() >= _FIELDS.keys():
            missing = sorted(_FIELDS.keys() - given.keys())
            raise InputError(
                f"a schedule in JSON needs steps, change_points, multipliers and base, got none for {missing}: "
                "write it with Schedule.save"
            )
        read: list[Any] = []
        name = ""
        try:
            for name, check in _FIELDS.items():
                read.append(check(given[name]))
        except FieldError as error:
            raise error.inside(name) from None
        steps, points, multipliers, base = read
        shared = _shared_points(tuple(points)) if len(points) <= MAX_SHARED else None
        if shared is None or len(multipliers) + 1 != len(points) or points[-1] > steps or min(multipliers) <= 0:
            return cls(multipliers, points, steps, base)  # which says what is wrong, if anything is
        schedule = object.__new__(cls)
        schedule._set(_read_only(np.array(multipliers)), shared, steps, base)
        return schedule

    def plot(self, *, dark: bool = False) -> Any:
        """A plotly figure of the rate over the steps; needs the extra `plot`."""
        from paceline.views import schedule_figure

        return schedule_figure(self, dark=dark)

    def save(self, path: "str | Path") -> None:
        """Write the schedule as JSON."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: "str | Path") -> "Schedule":
        """Read the schedule that `save` wrote."""
        try:
            data = json.loads(Path(path).read_text())
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected a schedule that was saved or exported as JSON, got {path}: {error}") from error
        return cls.from_json(data)
