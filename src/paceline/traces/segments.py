"""Traces cut into intervals, one row of the model each, with sufficient statistics.

All observations of one interval share one input of the latent Gaussian process, so the likelihood needs only six sums
per interval. They are computed once, and new observations are added to them without touching the old ones.

Interval borders move to the last observation at or before them. The rate may then change inside an interval, which
costs nothing: the control of an interval is a mean of log10 rates anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from paceline.errors import InputError
from paceline.shapes import Shape
from paceline.traces.objective import Objective
from paceline.traces.schedule import Schedule
from paceline.traces.trace import Trace, is_sound

ClockName = Literal["step", "log"]
SPIKE = 1.5  # a loss that exceeds this multiple of the value its interval began with has failed


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the model sees it: steps, or the logarithm of the step from 1 % of the run on."""

    name: ClockName
    steps: int

    def __post_init__(self) -> None:
        if self.name not in ("step", "log"):
            raise InputError(f'clock must be "step" or "log", got {self.name!r}: pick one of these')

    @property
    def origin(self) -> int:
        """The step at which the clock starts."""
        return 0 if self.name == "step" else max(1, round(0.01 * self.steps))

    def __call__(self, step: Float[np.ndarray, "*s"] | Int[np.ndarray, "*s"]) -> Float[np.ndarray, "*s"]:
        """Clock reading at a step: 0 at the origin, increasing."""
        at = np.maximum(np.asarray(step, dtype=float), self.origin)
        return np.asarray(at if self.name == "step" else np.log(at / self.origin))

    def equal(self, intervals: int) -> Int[np.ndarray, "points"]:
        """Change points of intervals that are equal on this clock."""
        if not 1 <= intervals <= self.steps:
            raise InputError(f"intervals must be between 1 and the {self.steps:,} steps of the run, got {intervals}")
        if self.name == "step":
            points = np.linspace(0, self.steps, intervals + 1)
        else:
            points = np.geomspace(self.origin, self.steps, intervals + 1)
        return np.unique(points.round().astype(int))


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
        """The sums with further observations; work proportional to the new ones."""
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

    `start_values` and `controls` hold Y_k, Y_{k-1}, ... and log10 of the mean rate x_k, x_{k-1}, ..., as many as the
    order of the model; the oldest is repeated where a run is younger than that. `summed` is the sum over the intervals
    before of mean rate times share of the run.
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

    @property
    def end_value(self) -> float:
        """The last value observed in the interval."""
        return self.start_values[0] + (float(self.residuals[-1]) if len(self.residuals) else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Segmenter:
    """How traces are cut: where, on which clock, how much history each interval carries.

    Args:
        clock: the clock of the model.
        intervals: change points for all traces; None cuts each trace where its own schedule changes, and into twenty
            equal intervals where it does not.
        order: q of NARX(q).
        base: the base whose multiplier is the control; None where the control is the rate itself.
        objective: how values are read.
    """

    clock: Clock
    intervals: Int[np.ndarray, "points"] | None
    order: int
    base: Shape | None
    objective: Objective

    def points(self, schedule: Schedule, end: int = 0) -> Int[np.ndarray, "points"]:
        """Change points for a run under this schedule; past the last one they go on to `end` at the same pace."""
        points = self.intervals
        if points is None:
            own = schedule.change_points
            points = own if len(own) > 2 else self.clock.equal(min(20, self.clock.steps))
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
        """The part of a run between two steps, on the model's clock."""
        at = self.clock(np.array([start, stop, self.clock.steps]))
        return float((at[1] - at[0]) / at[2])

    def split(self, trace: Trace, known: "Segment | None" = None) -> list[Segment]:
        """The intervals of a trace that hold observations of its own.

        With `known`, the last interval cut from a shorter trace of the same run: that interval, if it has grown or
        failed since, and the ones after it. Sums over its old observations are not formed again.
        """
        steps, values = trace.path()
        own, sound = len(steps) - len(trace.steps), is_sound(values)
        diverged = not sound.all()
        end = int(np.argmin(sound)) if diverged else len(values)
        if end == 0:
            return []
        steps, values = steps[:end], self.objective.to_model(values[:end])
        borders = self._borders(trace, steps)
        if borders[-1] < end - 1 or diverged:
            borders.append(end - 1)
        if known is not None and known.start not in steps[borders]:
            raise InputError(
                f"trace {trace.name!r} was cut at step {known.start:,} before and is not any more, its schedule has "
                "new change points: fit with intervals= so that all runs are cut alike"
            )
        segments: list[Segment] = []
        failures = self._failures(values, borders, trace.failed)
        for k, (a, b) in enumerate(pairwise(borders)):
            parents = b < own and not (diverged and a == b)
            if parents or (known is not None and steps[a] < known.start):
                continue
            same = known if known is not None and steps[a] == known.start else None
            if same is None or (int(steps[b]), failures[k]) != (same.stop, same.failed):
                segments.append(self._segment(trace, steps, values, borders[: k + 1], b, failures[k], same))
        return segments

    def _borders(self, trace: Trace, steps: Int[np.ndarray, "path"]) -> list[int]:
        """Indices into the path at which intervals begin."""
        points = self.points(trace.schedule, int(steps[-1]))
        points = np.concatenate([points, trace.fork_steps(), [self.clock.origin]])
        points = points[(points >= self.clock.origin) & (points <= max(steps[-1], self.clock.origin))]
        return sorted(set(np.maximum(np.searchsorted(steps, points, side="right") - 1, 0).tolist()))

    def _failures(self, values: Float[np.ndarray, "path"], borders: Sequence[int], ended: bool) -> list[bool]:
        """Which intervals failed: those that spiked, those after a spike until the run has recovered, and a last one
        that the run ended in.
        """
        failures, reference = list[bool](), None
        for a, b in pairwise(borders):
            start = float(values[a]) if reference is None else reference
            failures.append(self._spiked(start, values[a : b + 1]))
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
        known: "Segment | None",
    ) -> Segment:
        """The interval that begins at path index past[-1] and ends at b."""
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
        new = slice(a + 1 + (known.moments.n if known else 0), b + 1)
        elapsed = self.clock(steps[new]) - self.clock(steps[a : a + 1])
        residuals = values[new] - values[a]
        return Segment(
            trace=trace.name,
            task=trace.task,
            start=int(steps[a]),
            stop=int(steps[b]),
            start_values=tuple(starts + starts[-1:] * missing),
            controls=tuple(controls + controls[-1:] * missing),
            elapsed=np.concatenate([known.elapsed, elapsed]) if known else elapsed,
            residuals=np.concatenate([known.residuals, residuals]) if known else residuals,
            moments=(known.moments if known else Moments()).append(elapsed, residuals),
            failed=failed,
            first=len(past) == 1,
            rate_sum=float(sum(shares)),
        )

    def _spiked(self, start: float, values: Float[np.ndarray, "n"]) -> bool:
        """Whether a positive loss exceeded 1.5 times a value, by more than three deviations of its noise."""
        if self.objective.mode == "max" or len(values) < 2:
            return False
        # second differences are free of a trend; their median, of the spike itself
        noise = float(np.median(np.abs(np.diff(values, 2)))) / (0.6745 * 6**0.5) if len(values) > 5 else 0.0
        worst = float(values.min()) + 3 * noise
        if self.objective.transform == "log":
            return bool(worst < start - np.log(SPIKE))
        return start < 0 and worst < SPIKE * start
