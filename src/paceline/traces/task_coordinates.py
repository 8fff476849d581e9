"""Known coordinates of tasks, such as the size of their data or of their model, and the scale of each.

What is known of a task beside its runs says how far it is from others before it has any. Coordinates are standardised
over the tasks, so that the lengthscale of each has the same prior.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log
from numbers import Real
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError

LOG_FACTOR = 3.0  # a positive coordinate that spans more than this factor is taken on a log scale

Coordinates = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class TaskCoordinates:
    """The coordinates of tasks, all of the same names.

    >>> known = TaskCoordinates.of({"few": {"rows": 100}, "some": {"rows": 1_000}, "all": {"rows": 10_000}})
    >>> known.rows(["few", "all"]).round(2).tolist()
    [[-1.22], [1.22]]

    Args:
        names: of the coordinates.
        values: of each task, in the order of the names.
        is_log: which of them are on a log scale.
        centre, width: mean and standard deviation over the tasks, on these scales.
    """

    names: tuple[str, ...]
    values: dict[str, tuple[float, ...]]
    is_log: tuple[bool, ...]
    centre: tuple[float, ...]
    width: tuple[float, ...]

    @classmethod
    def of(cls, at: Coordinates) -> "TaskCoordinates":
        """Scale the coordinates of these tasks. A coordinate that is the same in all of them keeps its unit."""
        tasks = check_coordinates(at)
        names = tuple(next(iter(tasks.values())))
        values = {task: tuple(given[name] for name in names) for task, given in tasks.items()}
        columns = np.array(list(values.values())).T
        is_log = tuple(bool(column.min() > 0 and column.max() > LOG_FACTOR * column.min()) for column in columns)
        scaled = [np.log(column) if is_log[i] else column for i, column in enumerate(columns)]
        width = tuple(float(column.std()) or 1.0 for column in scaled)
        return cls(names, values, is_log, tuple(float(column.mean()) for column in scaled), width)

    def with_task(self, task: str, at: Mapping[str, float]) -> "TaskCoordinates":
        """With one more task, on the same scales."""
        (given,) = check_coordinates({task: at}, self.names).values()
        return replace(self, values={**self.values, task: tuple(given[name] for name in self.names)})

    def rows(self, tasks: Sequence[str]) -> Float[np.ndarray, "tasks coordinates"]:
        """The standardised coordinates of some tasks."""
        return np.array([self._row(task) for task in tasks]).reshape(len(tasks), len(self.names))

    def _row(self, task: str) -> list[float]:
        if task not in self.values:
            raise InputError(
                f"expected the coordinates {', '.join(self.names)} of task {task!r}, got those of "
                f"{list(self.values)}: add the task to at="
            )
        row = list[float]()
        for i, value in enumerate(self.values[task]):
            if self.is_log[i] and value <= 0:
                raise InputError(
                    f"at[{task!r}][{self.names[i]!r}] must be positive, as it is in the other tasks (it is taken on "
                    f"a log scale), got {value:g}"
                )
            row.append(((log(value) if self.is_log[i] else value) - self.centre[i]) / self.width[i])
        return row


def check_coordinates(at: Any, names: "Sequence[str] | None" = None) -> dict[str, dict[str, float]]:
    """Coordinates as plain numbers; each task must have finite ones of the same names. Both are sorted.

    Args:
        at: coordinates by name, by the name of the task.
        names: that they must have; those of the first task by default.
    """
    tasks = _as_dict(at)
    if not tasks or not all(_as_dict(given) for given in tasks.values()):
        raise InputError(f"at must give each task coordinates by name, got {at!r}: pass {{'a': {{'rows': 5_000}}}}")
    names = sorted(names or next(iter(tasks.values())))
    return {task: _checked(task, tasks[task], names) for task in sorted(tasks)}


def _as_dict(value: Any) -> dict[str, Any]:
    """A mapping as a dict; an empty one for anything else."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _checked(task: str, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    if sorted(given) != names:
        raise InputError(
            f"all tasks must have the same coordinates, {', '.join(names)}, got {', '.join(given)} for {task!r}: "
            "name the same for each"
        )
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise InputError(f"at[{task!r}][{name!r}] must be a finite number, got {value!r}")
    return {name: float(given[name]) for name in names}
