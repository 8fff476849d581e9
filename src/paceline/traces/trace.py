"""A trace: the observations of one training run, its schedule and its parent.

A fork holds only what it observed after it was cloned; its parent holds the history before. So no observation of a set
of forks is counted twice, however often a run was cloned.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from paceline.errors import InputError
from paceline.traces.objective import Objective
from paceline.traces.schedule import Schedule

DEFAULT_OBJECTIVE = Objective()


LARGEST_VALUE = 1e100  # larger values overflow when they are squared and summed


def is_sound(values: np.ndarray) -> np.ndarray:
    """Which values a model can use: those that are finite and below 1e100."""
    return np.abs(values) < LARGEST_VALUE  # False for NaN too


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Observations of one run, in the user's units.

    Args:
        steps: how many updates were done at each observation, increasing.
        values: the observations; finite unless the trace is `failed`.
        schedule: the learning rate, from step 0 of the run.
        parent: the trace this one was cloned from, if any.
        fork_step: the step at which it was cloned; the trace's own steps come after it.
        task: the task of a family that the run belongs to.
        name: identity of the run: a longer trace of the same name continues the shorter one.
        objective: what the values mean.
        failed: whether the run ended in failure; only then may values be non-finite.

    Attributes:
        first_step: the step of the first observation of the run, which its oldest ancestor made.

    >>> trace = Trace.from_table([0, 10, 20], [0.1, 0.1, 0.01], [3.0, 2.0, 1.5])
    >>> trace.schedule(5), trace.last_value
    (0.1, 1.5)
    """

    steps: np.ndarray
    values: np.ndarray
    schedule: Schedule
    parent: "Trace | None" = None
    fork_step: int = 0
    task: str = ""
    name: str = ""
    objective: Objective = DEFAULT_OBJECTIVE
    failed: bool = False
    first_step: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where = f"trace {self.name!r}" if self.name else "trace"
        try:
            steps, values = np.array(self.steps, dtype=float), np.array(self.values, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: steps and values must be numbers ({error}): convert them first") from error
        if steps.ndim != 1 or steps.shape != values.shape:
            raise InputError(
                f"{where}: steps and values must be two columns of equal length, got {steps.shape} and {values.shape}"
            )
        if steps.size == 0:
            raise InputError(f"{where}: expected at least one observation, got none: record values during the run")
        if not np.all(np.isfinite(steps)) or np.any(steps != np.round(steps)) or steps[0] < 0:
            raise InputError(f"{where}: steps must be whole numbers from 0 on, got {steps[:5].tolist()}: count updates")
        if np.any(np.diff(steps) <= 0):
            bad = int(np.argmax(np.diff(steps) <= 0))
            raise InputError(
                f"{where}: steps must increase, got {steps[bad]:,.0f} followed by {steps[bad + 1]:,.0f}: "
                "sort the observations and drop repeated steps"
            )
        finite = is_sound(values)
        if not self.failed and not finite.all():
            raise InputError(
                f"{where}: values must be finite and below 1e100, "
                f"got {values[~finite][0]} at step {steps[~finite][0]:,.0f}: "
                "pass failed=True for a run that diverged, or drop missing rows"
            )
        if self.parent is not None:
            self._check_fork(self.parent, where, int(steps[0]))
        object.__setattr__(self, "steps", steps.astype(int))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "first_step", int(steps[0]) if self.parent is None else self.parent.first_step)
        self.steps.setflags(write=False)
        self.values.setflags(write=False)

    def _check_fork(self, parent: "Trace", where: str, first: int) -> None:
        if not parent.first_step <= self.fork_step <= parent.last_step:
            raise InputError(
                f"{where}: fork_step must be within its parent's steps {parent.first_step:,}..{parent.last_step:,}, "
                f"got {self.fork_step:,}: clone a state from one of these steps"
            )
        if first <= self.fork_step:
            raise InputError(
                f"{where}: a fork's own steps come after fork_step {self.fork_step:,}, got {first:,}: "
                "drop the observations that the parent holds"
            )

    @classmethod
    def from_table(cls, steps: Any, rates: Any, values: Any, **fields: Any) -> "Trace":
        """The trace of a log. Each row has the number of updates done, the rate and the value.

        Rows before the first finite value are dropped. At a later value that is not finite, the trace ends as failed.
        `fields` are those of `Trace`.
        """
        at, observed = np.asarray(steps), np.asarray(values, dtype=float)
        schedule = Schedule.from_table(at, rates)
        if observed.shape != at.shape:
            raise InputError(
                f"steps and values must be two columns of equal length, got {at.shape} and {observed.shape}"
            )
        bad = ~is_sound(observed)
        if bad.all():
            raise InputError(
                f"expected at least one finite value, got {observed.size} that are not: check the column of the values"
            )
        begin = int(np.argmin(bad))  # a log may start before the first evaluation
        at, observed, bad = at[begin:], observed[begin:], bad[begin:]
        if bad.any():
            end = int(np.argmax(bad)) + 1
            at, observed, fields = at[:end], observed[:end], {"failed": True, **fields}
        return cls(at, observed, schedule, **fields)

    def fork(self, steps: Any, values: Any, schedule: Schedule, *, at: int | None = None, **fields: Any) -> "Trace":
        """A clone of this run from step `at` on (its last one by default), with its own observations after it."""
        fields = {"task": self.task, "objective": self.objective, **fields}
        at = self.last_step if at is None else at
        return Trace(np.asarray(steps), np.asarray(values, dtype=float), schedule, self, at, **fields)

    def extend(self, steps: Any, values: Any) -> "Trace":
        """The same run with further observations."""
        return replace(
            self,
            steps=np.concatenate([self.steps, np.asarray(steps)]),
            values=np.concatenate([self.values, np.asarray(values, dtype=float)]),
        )

    def head(self, count: int) -> "Trace":
        """The first `count` observations."""
        if count < 1:
            raise InputError(f"count must be at least 1 observation, got {count}: a trace cannot be empty")
        failed = self.failed and count >= len(self.steps)
        return replace(self, steps=self.steps[:count], values=self.values[:count], failed=failed)

    @property
    def last_step(self) -> int:
        """Updates done at the last observation."""
        return int(self.steps[-1])

    @property
    def last_value(self) -> float:
        """The last observation."""
        return float(self.values[-1])

    def path(self) -> tuple[Int[np.ndarray, "path"], Float[np.ndarray, "path"]]:
        """Steps and values from step 0 of the first ancestor to the end of this trace."""
        if self.parent is None:
            return self.steps, self.values
        steps, values = [self.steps], [self.values]
        for ancestor, end in self._ancestors():
            before = ancestor.steps <= end
            steps.append(ancestor.steps[before])
            values.append(ancestor.values[before])
        return np.concatenate(steps[::-1]), np.concatenate(values[::-1])

    def fork_steps(self) -> list[int]:
        """The steps at which this trace and its ancestors were cloned, oldest first."""
        ends = dict.fromkeys(end for _, end in self._ancestors())
        return [*reversed(ends)]

    def _ancestors(self) -> "Generator[tuple[Trace, int]]":
        """Each ancestor, the parent first, with the last step that belongs to this run too."""
        ancestor, end = self.parent, self.fork_step
        while ancestor is not None:  # a loop, since lineages may be long
            yield ancestor, end
            ancestor, end = ancestor.parent, min(end, ancestor.fork_step)
