"""The distribution of start values: where new runs begin."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.traces import Clock, Scaling, Segment

UNKNOWN = (0.5, 0.5)  # mean and deviation without any observation, scaled: values lie in about [0, 1]
LATE = 0.02  # share of the run after the earliest start; runs that are first observed later are ignored


@dataclass(frozen=True, slots=True)
class StartDistribution:
    """Y_0 ~ N(mean, deviation^2), scaled.

    Args:
        step: the step at which runs are first observed.
        mean, deviation: over all runs.
        tasks: mean and deviation of each task, in the order of their numbers.
    """

    step: int
    mean: float
    deviation: float
    tasks: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(
        cls, segments: Sequence[Segment], scaling: Scaling, clock: Clock, tasks: Sequence[str] = ()
    ) -> "StartDistribution":
        """The maximum-likelihood distribution of the first values of runs.

        Tasks have means of their own and share the deviation around them. A task without a run has the mean and
        deviation of all runs.
        """
        firsts = [s for s in segments if s.first]
        if not firsts:
            return cls(clock.origin, *UNKNOWN, (UNKNOWN,) * len(tasks))
        latest = min(s.start for s in firsts) + LATE * clock.steps
        firsts = [s for s in firsts if s.start <= latest]
        values = scaling.to_scaled(np.array([s.start_values[0] for s in firsts]))
        overall = float(values.mean()), float(values.std())
        names = np.array([s.task for s in firsts])
        means = {name: float(values[names == name].mean()) for name in tasks if np.any(names == name)}
        within = float(np.sqrt(np.mean((values - [means[str(name)] for name in names]) ** 2))) if tasks else 0.0
        each = tuple((means[name], within) if name in means else overall for name in tasks)
        return cls(int(np.median([s.start for s in firsts])), *overall, each)

    def for_task(self, task: int | None) -> tuple[float, float]:
        """Mean and deviation of a task, or of all runs."""
        return (self.mean, self.deviation) if task is None else self.tasks[task]
