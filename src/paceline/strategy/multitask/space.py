"""What is searched: schedules with one number in [0, 1] per interval, and the initial design.

x_k is the rate of interval k, or the multiplier of a base there, on the logarithmic scale of the bounds. This is the
model's own control, so a forecast for x is a forecast for the schedule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model import TraceModel
from paceline.shapes import Shape, shape_of
from paceline.traces import LearningRateRange, Schedule


@dataclass(frozen=True, slots=True)
class Space:
    """Schedules of d equal intervals.

    Args:
        lr_range: bounds of the rate; of the multiplier if there is a base.
        steps: length of a run.
        intervals: d.
        base: the paper's piecewise-constant rates, or a shape to be multiplied.

    >>> space = Space(LearningRateRange(1e-4, 1e-2), steps=100, intervals=2)
    >>> space.schedule([0.5, 0.0]).multipliers.round(6).tolist()
    [0.001, 0.0001]
    """

    lr_range: LearningRateRange
    steps: int
    intervals: int = 5
    base: "str | Shape" = "constant"

    def __post_init__(self) -> None:
        if not 1 <= self.intervals <= self.steps:
            raise InputError(
                f"intervals must lie between 1 and the {self.steps:,} steps of a run, got {self.intervals}"
            )

    @property
    def change_points(self) -> Int[np.ndarray, "points"]:
        """T_0, ..., T_d."""
        return np.linspace(0, self.steps, self.intervals + 1).round().astype(int)

    def schedule(self, x: "Sequence[float] | Float[np.ndarray, 'intervals'] | Tensor") -> Schedule:
        """The schedule of x."""
        unit = np.clip(np.asarray(x, dtype=float), 0.0, 1.0)
        return Schedule(self.lr_range.from_unit(unit), self.change_points, self.steps, self.base)

    def x_of(self, schedule: Schedule) -> Float[np.ndarray, "intervals"]:
        """The x nearest to a schedule: its mean control over each interval, which may lie outside [0, 1]."""
        multiplied = schedule.tuned_base is not None and schedule.base == shape_of(self.base)
        means = [schedule.mean_log10(int(a), int(b), of_multiplier=multiplied) for a, b in pairwise(self.change_points)]
        return self.lr_range.log10_to_unit(np.array(means))

    def lengths(self, model: TraceModel) -> Float[Tensor, "intervals"]:
        """Lengths of the intervals in the model's units, from the step at which runs are first observed."""
        ahead = model.encoder.future(self.schedule([0.5] * self.intervals), model.start_distribution.step)
        if len(ahead.lengths) != self.intervals:
            raise InputError(
                f"expected a model of {self.intervals} intervals, got one that cuts a run into {len(ahead.lengths)}: "
                f"fit with intervals={self.change_points.tolist()}, and observe runs before the first of them ends"
            )
        return torch.tensor(ahead.lengths, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class Run:
    """A run to make: its task, and its schedule as x."""

    task: str
    x: tuple[float, ...]


def as_floats(x: "Float[np.ndarray, 'intervals'] | Tensor") -> tuple[float, ...]:
    """Plain numbers, for a `Run`."""
    return tuple(float(value) for value in x)


def initial_runs(space: Space, tasks: Sequence[str], count: int, seed: int) -> tuple[Run, ...]:
    """Latin hypercube in log space: each interval's rates fill `count` equal cells once; tasks take turns.

    >>> space = Space(LearningRateRange(1e-4, 1e-2), steps=100, intervals=2)
    >>> sorted(run.task for run in initial_runs(space, ["a", "b"], 4, seed=0))
    ['a', 'a', 'b', 'b']
    """
    if count < 1:
        raise InputError(f"initial must be at least 1, got {count}: a model needs runs to begin with")
    rng = np.random.default_rng([seed, 11])
    cells = np.stack([rng.permutation(count) for _ in range(space.intervals)], 1)
    x = (cells + rng.uniform(size=cells.shape)) / count
    order = np.concatenate([rng.permutation(len(tasks)) for _ in range(-(-count // len(tasks)))])[:count]
    return tuple(Run(tasks[int(m)], as_floats(row)) for m, row in zip(order, x, strict=True))
