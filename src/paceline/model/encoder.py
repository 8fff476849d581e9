"""Between traces and numbers: how runs are cut, scaled and named, fixed when a model is first fitted.

A `Frame` turns intervals into the inputs z of the latent functions, a schedule into the intervals still to come, and a
run so far into the values and rates behind it. It knows nothing of Gaussian processes.
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
from paceline.traces import Clock, ClockName, Scaling, Schedule, Segment, Segmenter, Trace, is_sound

Intervals = int | Sequence[int] | Int[np.ndarray, "points"] | None


@dataclass(frozen=True, slots=True, eq=False)
class FutureIntervals:
    """Intervals still to come: borders in steps, rates in [0, 1], lengths in mean intervals."""

    edges: Int[np.ndarray, "borders"]
    unit_lr: Float[np.ndarray, "intervals"]
    lengths: Float[np.ndarray, "intervals"]


@dataclass(frozen=True, slots=True, eq=False)
class PastIntervals:
    """Scaled values (Y now, then earlier ones) and rates of the intervals behind, newest first; the last interval."""

    values: Float[np.ndarray, "order"]
    unit_lr: Float[np.ndarray, "rates"]
    last: Segment | None
    rate_sum: float = 0.0


@dataclass(frozen=True, slots=True)
class StartDistribution:
    """Y_0 ~ N(mean, deviation^2), scaled, at the step where runs are first observed.

    Tasks begin at means of their own (`tasks`, in the order of their numbers) and share the deviation around them.
    """

    step: int
    mean: float
    deviation: float
    tasks: tuple[tuple[float, float], ...] = ()

    def of(self, task: int | None) -> tuple[float, float]:
        """Mean and deviation for a task."""
        return (self.mean, self.deviation) if task is None else self.tasks[task]


@dataclass(frozen=True, slots=True, eq=False)
class TraceEncoder:
    """How a model reads runs.

    Args:
        cutting: where runs are cut into intervals.
        scaling: units.
        tasks: names of the tasks, in the order of their numbers; empty where all runs are of one task.
        summed_rate: how the summed rate is scaled, where it is an input.
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
        """Number of a task, None where the model has no tasks."""
        if not self.tasks:
            return None
        if task not in self.tasks:
            raise InputError(f"task must be one of those fitted, {list(self.tasks)}, got {task!r}: name the run's task")
        return self.tasks.index(task)

    def with_tasks(self, names: Sequence[str]) -> "TraceEncoder":
        """The frame with these tasks after those it has; as it is where all runs are of one task."""
        new = sorted(set(names) - set(self.tasks)) if self.tasks else []
        return replace(self, tasks=(*self.tasks, *new))

    def check_base(self, schedule: Schedule) -> None:
        """Refuse a schedule whose multiplier is not the control of this model."""
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
        return FutureIntervals(
            edges, self.scaling.lr_range.log10_to_unit(controls), self.elapsed(edges[:-1], edges[1:])
        )

    def past(self, start: Trace) -> PastIntervals:
        """Where a run stands and came from."""
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

    def start_distribution(self, segments: Sequence[Segment]) -> StartDistribution:
        """Y_0 over runs that begin at the beginning, by maximum likelihood; a task without any may begin anywhere."""
        firsts = [s for s in segments if s.first]
        if not firsts:
            return StartDistribution(self.segmenter.clock.origin, 0.5, 0.5, ((0.5, 0.5),) * len(self.tasks))
        latest = min(s.start for s in firsts) + 0.02 * self.segmenter.clock.steps  # a run recorded late says nothing
        firsts = [s for s in firsts if s.start <= latest]
        values = self.scaling.to_scaled(np.array([s.start_values[0] for s in firsts]))
        overall = float(values.mean()), float(values.std())
        names = np.array([s.task for s in firsts])
        means = {name: float(values[names == name].mean()) for name in self.tasks if np.any(names == name)}
        within = float(np.sqrt(np.mean((values - [means[str(name)] for name in names]) ** 2))) if self.tasks else 0.0
        tasks = tuple((means[name], within) if name in means else overall for name in self.tasks)
        return StartDistribution(int(np.median([s.start for s in firsts])), *overall, tasks)

    def to_user(self, values: Tensor) -> Float[np.ndarray, "*shape"]:
        """Scaled values -> the user's units."""
        return self.segmenter.objective.to_user(self.scaling.to_model(values.detach().numpy()))


def segmenter_for(traces: Sequence[Trace], intervals: Intervals, clock: ClockName, order: int) -> Segmenter:
    """How to cut these traces: the control is a multiplier only where all of them are tuned on the same base."""
    time = Clock(clock, max(max(trace.schedule.steps, trace.last_step) for trace in traces))
    bases = {trace.schedule.tuned_base for trace in traces}
    base = bases.pop() if len(bases) == 1 else None
    return Segmenter(time, _points(intervals, time), order, base, traces[0].objective)


def _points(intervals: Intervals, clock: Clock) -> Int[np.ndarray, "points"] | None:
    if intervals is None:
        return None
    points = np.asarray(intervals)
    if points.ndim == 0:
        return clock.equal_intervals(int(points))
    whole = points.ndim == 1 and np.all(points == np.round(points))
    if not whole or len(points) < 2 or np.any(np.diff(points) <= 0) or points[0] < 0:
        raise InputError(f"change points must be at least two increasing whole steps from 0 on, got {points.tolist()}")
    return points.astype(int)
