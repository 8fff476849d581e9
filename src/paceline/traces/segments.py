"""Traces split into intervals: one row of the model each, with sufficient statistics.

All observations of an interval share one input of the latent Gaussian process, so the likelihood needs only six sums
per interval. They are computed once; new observations are added to the old sums.

An interval begins at the last observation at or before its change point. The rate may then change inside an interval.
That does no harm: the control of an interval is a mean of log10 rates anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from paceline.errors import InputError
from paceline.shapes import Shape
from paceline.traces.clock import Clock, ClockName
from paceline.traces.divergence import is_absurd, observation_noise
from paceline.traces.objective import Objective
from paceline.traces.schedule import Schedule
from paceline.traces.trace import Trace, is_sound

Intervals = int | Sequence[int] | Int[np.ndarray, "points"] | None
DEFAULT_INTERVALS = 20  # of a run whose own schedule does not change
FEWEST_AT_END = 3  # observations that the end of an interval holds, if it has so many: noise is read from them
SPIKE = 1.5  # an interval failed if its loss exceeds this multiple of the value it began with,
SPIKE_DEVIATIONS = 3.0  # by more than so many deviations of the noise


@dataclass(frozen=True, slots=True)
class Moments:
    """The six sums over an interval that a Gaussian likelihood with a linear link needs."""

    n: int = 0
    r: float = 0.0
    t: float = 0.0
    rr: float = 0.0
    rt: float = 0.0
    tt: float = 0.0

    def append(self, elapsed: Float[np.ndarray, "new"], residuals: Float[np.ndarray, "new"]) -> "Moments":
        """The sums with further observations; the work is proportional to the new ones."""
        return Moments(
            self.n + len(elapsed),
            self.r + float(residuals.sum()),
            self.t + float(elapsed.sum()),
            self.rr + float(residuals @ residuals),
            self.rt + float(residuals @ elapsed),
            self.tt + float(elapsed @ elapsed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One interval of one trace, in the model's units (bigger is better) on the model's clock.

    Args:
        trace, task: names of the run and of its task.
        start, stop: first and last step.
        start_values: Y_k, Y_{k-1}, ..., as many as the order of the model.
        controls: log10 of the mean rate x_k, x_{k-1}, ..., as many. Where the run has fewer intervals than the order,
            the oldest value and control are repeated.
        elapsed: time of each observation since the start.
        residuals: observed values less Y_k.
        moments: sums over `elapsed` and `residuals`.
        failed: whether the run failed in this interval.
        first: whether it is the first interval of its run.
        rate_sum: sum of mean rate times share of the run, over the intervals before.
        diverged: whether a value of it is finite and absurd: no model of the values can use it.
        begins_diverged: whether its first value is: then its rate is not what made it fail.
    """

    trace: str
    task: str
    start: int
    stop: int
    start_values: tuple[float, ...]
    controls: tuple[float, ...]
    elapsed: Float[np.ndarray, "n"]
    residuals: Float[np.ndarray, "n"]
    moments: Moments
    failed: bool
    first: bool
    rate_sum: float = 0.0
    diverged: bool = False
    begins_diverged: bool = False

    @property
    def end_value(self) -> float:
        """The last value observed in the interval."""
        return self.start_values[0] + (float(self.residuals[-1]) if len(self.residuals) else 0.0)

    def ending(self, share: float) -> "Segment":
        """The interval without the observations before its last `share`; it still begins where it began."""
        if share >= 1 or not len(self.elapsed):
            return self
        early = int((self.elapsed < (1 - share) * self.elapsed[-1]).sum())
        first = max(0, min(early, len(self.elapsed) - FEWEST_AT_END))
        elapsed, residuals = self.elapsed[first:], self.residuals[first:]
        return replace(self, elapsed=elapsed, residuals=residuals, moments=Moments().append(elapsed, residuals))


@dataclass(frozen=True, slots=True, eq=False)
class Segmenter:
    """How traces are split: at which steps, on which clock, with how much history per interval.

    Args:
        clock: the clock of the model.
        intervals: change points for all traces. None splits each trace at the change points of its own schedule, or
            into twenty equal intervals if its schedule has none.
        order: q of NARX(q).
        base: the base whose multiplier is the control; None if the control is the rate itself.
        objective: what the values mean.
    """

    clock: Clock
    intervals: Int[np.ndarray, "points"] | None
    order: int
    base: Shape | None
    objective: Objective

    @classmethod
    def for_traces(
        cls, traces: Sequence[Trace], intervals: Intervals = None, clock: ClockName = "step", order: int = 1
    ) -> "Segmenter":
        """How to split these traces. The control is a multiplier if all of them are multiples of the same base.

        Args:
            traces: runs of one objective.
            intervals: how many equal intervals, or the change points themselves; None as above.
            clock: "step" or "log".
            order: q of NARX(q).
        """
        time = Clock(clock, max(max(trace.schedule.steps, trace.last_step) for trace in traces))
        bases = {trace.schedule.tuned_base for trace in traces}
        base = bases.pop() if len(bases) == 1 else None
        return cls(time, _change_points(intervals, time), order, base, traces[0].objective)

    def points(self, schedule: Schedule, end: int = 0) -> Int[np.ndarray, "points"]:
        """Change points for a run under this schedule, continued at the same spacing until `end`."""
        points = self.intervals
        if points is None:
            own = schedule.change_points
            points = own if len(own) > 2 else self.clock.equal_intervals(min(DEFAULT_INTERVALS, self.clock.steps))
        if points[-1] >= end:
            return points
        ratio = points[-1] / max(points[-2], 1)
        gap = points[-1] - points[-2]
        further = list[int]()
        while (further[-1] if further else points[-1]) < end:
            last = further[-1] if further else int(points[-1])
            further.append(round(last * ratio) if self.clock.name == "log" and ratio > 1 else last + int(gap))
        return np.concatenate([points, further])

    def control(self, schedule: Schedule, start: int, stop: int) -> float:
        """log10 of the control over an interval."""
        return schedule.mean_log10(start, max(stop, start + 1), of_multiplier=self.base is not None)

    def share(self, start: int, stop: int) -> float:
        """The share of a run between two steps, on the model's clock."""
        at = self.clock(np.array([start, stop, self.clock.steps]))
        return float((at[1] - at[0]) / at[2])

    def split(self, trace: Trace, last: "Segment | None" = None) -> list[Segment]:
        """The intervals of a trace that hold observations of its own.

        Args:
            trace: the run, with its parents.
            last: the last interval of a shorter trace of the same run. Only that interval, if it grew or failed since,
                and later ones are then returned. Sums over its old observations are kept.
        """
        steps, values = trace.path()
        own, sound = len(steps) - len(trace.steps), is_sound(values)
        diverged = not sound.all()
        end = int(np.argmin(sound)) if diverged else len(values)
        if end == 0:
            return []
        absurd = is_absurd(-self.objective.sign * values[:end])
        steps, values = steps[:end], self.objective.to_model(values[:end])
        borders = self._borders(trace, steps)
        if borders[-1] < end - 1 or diverged:
            borders.append(end - 1)
        if last is not None and last.start not in steps[borders]:
            raise InputError(
                f"trace {trace.name!r} no longer has an interval that starts at step {last.start:,}: its schedule has "
                "new change points; fit with intervals= so that all runs are split alike"
            )
        segments: list[Segment] = []
        failures = self._failures(values, absurd, borders, trace.failed)
        for k, (a, b) in enumerate(pairwise(borders)):
            parents = b < own and not (diverged and a == b)
            if parents or (last is not None and steps[a] < last.start):
                continue
            same = last if last is not None and steps[a] == last.start else None
            if same is None or (int(steps[b]), failures[k]) != (same.stop, same.failed):
                segment = self._segment(trace, steps, values, borders[: k + 1], b, failures[k], same)
                if absurd[a : b + 1].any():
                    segment = replace(segment, diverged=True, begins_diverged=bool(absurd[a]))
                segments.append(segment)
        return segments

    def _borders(self, trace: Trace, steps: Int[np.ndarray, "path"]) -> list[int]:
        """Indices into the path at which intervals begin."""
        points = self.points(trace.schedule, int(steps[-1]))
        points = np.concatenate([points, trace.fork_steps(), [self.clock.origin]])
        points = points[(points >= self.clock.origin) & (points <= max(steps[-1], self.clock.origin))]
        return sorted(set(np.maximum(np.searchsorted(steps, points, side="right") - 1, 0).tolist()))

    def _failures(
        self,
        values: Float[np.ndarray, "path"],
        absurd: Bool[np.ndarray, "path"],
        borders: Sequence[int],
        ended: bool,
    ) -> list[bool]:
        """Which intervals failed.

        These are the intervals with a spike or an absurd value, those after it until the run has recovered, and the
        last one if the run ended in failure.
        """
        failures, reference = list[bool](), None
        for a, b in pairwise(borders):
            start = float(values[a]) if reference is None else reference
            failures.append(self._has_spike(start, values[a : b + 1]) or bool(absurd[a : b + 1].any()))
            reference = start if failures[-1] else None
        if ended and failures:
            failures[-1] = True
        return failures

    def _segment(
        self,
        trace: Trace,
        steps: Int[np.ndarray, "path"],
        values: Float[np.ndarray, "path"],
        past: Sequence[int],
        b: int,
        failed: bool,
        shorter: "Segment | None",
    ) -> Segment:
        """The interval that begins at path index past[-1] and ends at b; `shorter` is its earlier version."""
        a = past[-1]
        recent = past[::-1][: self.order]
        ends = [b, *recent[:-1]]
        starts = [float(values[i]) for i in recent]
        controls = [
            self.control(trace.schedule, int(steps[i]), int(steps[j])) for i, j in zip(recent, ends, strict=True)
        ]
        before = [(int(steps[i]), int(steps[j])) for i, j in pairwise(past)]
        shares = [self.share(i, j) * 10 ** self.control(trace.schedule, i, j) for i, j in before]
        missing = self.order - len(recent)
        new = slice(a + 1 + (shorter.moments.n if shorter else 0), b + 1)
        elapsed = self.clock(steps[new]) - self.clock(steps[a : a + 1])
        residuals = values[new] - values[a]
        return Segment(
            trace=trace.name,
            task=trace.task,
            start=int(steps[a]),
            stop=int(steps[b]),
            start_values=tuple(starts + starts[-1:] * missing),
            controls=tuple(controls + controls[-1:] * missing),
            elapsed=np.concatenate([shorter.elapsed, elapsed]) if shorter else elapsed,
            residuals=np.concatenate([shorter.residuals, residuals]) if shorter else residuals,
            moments=(shorter.moments if shorter else Moments()).append(elapsed, residuals),
            failed=failed,
            first=len(past) == 1,
            rate_sum=float(sum(shares)),
        )

    def _has_spike(self, start: float, values: Float[np.ndarray, "n"]) -> bool:
        """Whether a positive loss exceeded a multiple of a value by more than its noise."""
        if len(values) < 2:
            return False
        worst = float(values.min()) + SPIKE_DEVIATIONS * observation_noise(values)
        if self.objective.transform == "log":  # of a positive value: a ratio if smaller is better, else not a loss
            return self.objective.mode == "min" and bool(worst < start - np.log(SPIKE))
        return start < 0 and worst < SPIKE * start


def _change_points(intervals: Intervals, clock: Clock) -> Int[np.ndarray, "points"] | None:
    if intervals is None:
        return None
    points = np.asarray(intervals)
    if points.ndim == 0:
        return clock.equal_intervals(int(points))
    whole = points.ndim == 1 and np.all(points == np.round(points))
    if not whole or len(points) < 2 or np.any(np.diff(points) <= 0) or points[0] < 0:
        raise InputError(f"change points must be at least two increasing whole steps from 0 on, got {points.tolist()}")
    return points.astype(int)
