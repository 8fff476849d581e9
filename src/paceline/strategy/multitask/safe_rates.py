"""Safe rates of a family: plans and answers stay below the rates at which runs of a task would fail.

The trace model takes an interval that failed as one without progress, so it expects little of the rate there, but it
does not know that nothing good can follow. So plans are limited to rates that fail with a probability below a given
one, as the failure guard of a single run has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import StableRates
from paceline.strategy.multitask.preprocess_runs import schedule_on_base
from paceline.strategy.multitask.space import Space
from paceline.traces import Segment, Segmenter, Trace, ended_worse, is_sound, lies_far_above

CANDIDATES = 201  # rates on the grid over the bounds


@dataclass(frozen=True, slots=True, eq=False)
class SafeRates:
    """How high a rate may be.

    Args:
        space: the schedules searched.
        stable: which rates fail; None if nothing has failed.
    """

    space: Space
    stable: StableRates | None

    @classmethod
    def fit(cls, traces: Sequence[Trace], space: Space) -> "SafeRates":
        """What the intervals of runs show, each run until it failed for good."""
        runs = [replace(trace, schedule=schedule_on_base(trace, space)) for trace in traces]
        if not runs:
            return cls(space, None)
        segmenter = Segmenter.for_traces(runs, space.change_points)
        rated = [interval for trace in runs for interval in rated_intervals(trace, segmenter)]
        if not any(failed for _, failed, _ in rated):
            return cls(space, None)
        rates, failed, tasks = zip(*rated, strict=True)
        return cls(space, StableRates.fit(np.array(rates), np.array(failed), tasks))

    def highest(self, tasks: Sequence[str], risk: float) -> Float[Tensor, "tasks"]:
        """For each task, the highest x in [0, 1] of the bounds that fails with a probability below `risk`."""
        x = np.ones(len(tasks))
        if self.stable is not None:
            grid = np.log10(self.space.lr_range.from_unit(np.linspace(0.0, 1.0, CANDIDATES)))
            x = self.space.lr_range.log10_to_unit(np.array([self.stable.highest(task, grid, risk) for task in tasks]))
        return torch.tensor(x, dtype=torch.float64).clamp(0, 1)


def rated_intervals(trace: Trace, segmenter: Segmenter) -> list[tuple[float, bool, str]]:
    """log10 of the rate of each interval until the run failed for good, whether it failed there, and the task."""
    segments = segmenter.split(trace)
    if not segments:  # it has no value: if it failed, it did so at once
        first = segmenter.control(trace.schedule, *segmenter.points(trace.schedule)[:2].tolist())
        return [(first, True, trace.task)] if trace.failed else []
    end = failed_interval(trace, segments)
    until = segments if end is None else segments[: end + 1]
    return [(segment.controls[0], k == end, trace.task) for k, segment in enumerate(until)]


def failed_interval(trace: Trace, segments: Sequence[Segment]) -> int | None:
    """The interval in which a run failed for good, as an index of these; None if it did not.

    A run has failed if it could not go on, or if it is over and ended far worse than it began. Before that, intervals
    that got worse and recovered have not failed.
    """
    steps, values = trace.path()
    sound = is_sound(values)
    steps, losses = steps[sound], -trace.objective.sign * values[sound]
    is_over = trace.last_step >= trace.schedule.steps
    if not (trace.failed or (is_over and ended_worse(losses))):
        return None
    above = dict(zip(steps.tolist(), lies_far_above(losses).tolist(), strict=True))
    lasting = [k for k, segment in enumerate(segments) if not (segment.failed or above.get(segment.stop, True))]
    return min(lasting[-1] + 1 if lasting else 0, len(segments) - 1)
