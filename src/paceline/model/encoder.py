"""Runs as numbers: the encoding of intervals, schedules and runs that a trace model uses.

A `TraceEncoder` is fixed when a model is first fitted. It turns intervals into inputs z of the latent functions, a
schedule into the intervals still to come, and a run so far into its recent values and rates. It also converts scaled
values back to the user's units.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.linalg import tensor
from paceline.model.summed_rate import SummedRate
from paceline.traces import Scaling, Schedule, Segment, Segmenter, Trace, is_sound


@dataclass(frozen=True, slots=True, eq=False)
class FutureIntervals:
    """Intervals still to come.

    Args:
        edges: their borders, in steps.
        unit_lr: their rates, in [0, 1] of the bounds.
        lengths: their lengths, in mean intervals.
    """

    edges: Int[np.ndarray, "borders"]
    unit_lr: Float[np.ndarray, "intervals"]
    lengths: Float[np.ndarray, "intervals"]


@dataclass(frozen=True, slots=True, eq=False)
class PastIntervals:
    """The recent past of a run, newest first.

    Args:
        values: the current value Y, then those at the starts of the intervals before, scaled.
        unit_lr: rates of the last intervals, in [0, 1] of the bounds.
        last: the last interval; None if the run has a single observation.
        rate_sum: S, the summed rate so far.
    """

    values: Float[np.ndarray, "order"]
    unit_lr: Float[np.ndarray, "rates"]
    last: Segment | None
    rate_sum: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TraceEncoder:
    """How a model turns runs into numbers.

    Args:
        segmenter: how runs are split into intervals.
        scaling: units.
        tasks: names of the tasks, in the order of their numbers; empty if all runs are of one task.
        summed_rate: how the summed rate is scaled, if it is an input.
    """

    segmenter: Segmenter
    scaling: Scaling
    tasks: tuple[str, ...]
    summed_rate: SummedRate | None = None

    def inputs(self, segments: Sequence[Segment]) -> Float[Tensor, "n d"]:
        """z = (Y_k, .., x_k, .., S_k, task), scaled."""
        values = self.scaling.to_scaled(np.array([s.start_values for s in segments]))
        controls = self.scaling.lr_range.log10_to_unit(np.array([s.controls for s in segments]))
        columns = [values, controls]
        if self.summed_rate is not None:
            columns.append(self.summed_rate.unit(tensor(np.array([[s.rate_sum] for s in segments]))).numpy())
        if self.tasks:
            columns.append(np.array([[float(self.tasks.index(s.task))] for s in segments]))
        return tensor(np.concatenate(columns, 1))

    def task_number(self, task: str | None) -> int | None:
        """Number of a task; None if the model has no tasks."""
        if not self.tasks:
            return None
        if task not in self.tasks:
            raise InputError(f"task must be one of those fitted, {list(self.tasks)}, got {task!r}: name the run's task")
        return self.tasks.index(task)

    def with_tasks(self, names: Sequence[str]) -> "TraceEncoder":
        """The encoder with these tasks added at the end; unchanged if all runs are of one task."""
        new = sorted(set(names) - set(self.tasks)) if self.tasks else []
        return replace(self, tasks=(*self.tasks, *new))

    def check_base(self, schedule: Schedule) -> None:
        """Raise an error if the multiplier of a schedule is not the control of this model."""
        if self.segmenter.base is not None and schedule.tuned_base != self.segmenter.base:
            raise InputError(
                f"this model was fitted to multipliers of {self.segmenter.base}, got a schedule on {schedule.base}: "
                "use a schedule with the same base, or fit to traces of several bases (then x is the rate itself)"
            )

    def elapsed(self, start: "int | np.ndarray", stop: "int | np.ndarray") -> Float[np.ndarray, "..."]:
        """Time from one step to another, in mean intervals."""
        gap = self.segmenter.clock(np.asarray(stop)) - self.segmenter.clock(np.asarray(start))
        return np.asarray(gap / self.scaling.interval)

    def future(self, schedule: Schedule, begin: int, stop: int | None = None) -> FutureIntervals:
        """The intervals of a schedule from step `begin` on; the last is the one that holds `stop`."""
        self.check_base(schedule)
        segmenter, begin = self.segmenter, max(begin, self.segmenter.clock.origin)
        end = max(schedule.steps, begin + 1) if stop is None else max(stop, begin + 1)
        points = segmenter.points(schedule, end)
        later = points[points >= end]
        last = end if stop is None else int(later[0]) if len(later) else max(end, schedule.steps)
        edges = np.concatenate([[begin], points[(points > begin) & (points < end)], [last]]).astype(int)
        controls = np.array([segmenter.control(schedule, int(a), int(b)) for a, b in pairwise(edges)])
        unit_lr = self.scaling.lr_range.log10_to_unit(controls)
        return FutureIntervals(edges, unit_lr, self.elapsed(edges[:-1], edges[1:]))

    def past(self, start: Trace) -> PastIntervals:
        """The recent past of a run."""
        order = self.segmenter.order
        segments = self.segmenter.split(replace(start, failed=False) if is_sound(start.values).all() else start)
        if not segments:
            values = start.path()[1]
            level = self.segmenter.objective.to_model(values[is_sound(values)][-1:])
            if not len(level):
                raise InputError(
                    "a forecast starts from a finite value, got a run without one: forecast a new run instead"
                )
            return PastIntervals(np.repeat(self.scaling.to_scaled(level), order), np.zeros(0), None)
        last = segments[-1]
        values = np.array([last.end_value, *last.start_values])[:order]
        rates = self.scaling.lr_range.log10_to_unit(np.array(last.controls))[: order - 1]
        rate_sum = last.rate_sum + self.segmenter.share(last.start, last.stop) * 10 ** last.controls[0]
        return PastIntervals(self.scaling.to_scaled(values), rates, last, rate_sum)

    def to_user(self, values: Tensor) -> Float[np.ndarray, "*shape"]:
        """Scaled values -> the user's units."""
        return self.segmenter.objective.to_user(self.scaling.to_model(values.detach().numpy()))
