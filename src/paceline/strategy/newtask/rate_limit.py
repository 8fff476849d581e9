"""How high the next rate of a new task may be.

A family's forecasts are wrong about rises of the rate. A run that is better than every known run is forecast from
intervals that began worse, and there a higher rate still helped. A rise in the last interval cannot be corrected.
Falling rates do no such harm, so only rises are limited (docs/research.md, "A new task beyond its family").
"""

from dataclasses import dataclass, replace

import numpy as np

from paceline.model import Normals, TraceModel
from paceline.strategy.multitask import Space
from paceline.study import Reason, because
from paceline.traces import Schedule, Trace

ROUNDING = 1e-9  # rates come back from the log scale rounded


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The highest x of the next interval, in [0, 1] of the bounds, and why; no reason if there is no limit."""

    x: float = 1.0
    reason: Reason | None = None

    def binds(self, x: float) -> bool:
        """Whether x lies above the limit."""
        return x > self.x + ROUNDING

    def apply(self, x: float) -> float:
        """x, or the limit if x lies above it."""
        return self.x if self.binds(x) else x


def is_beyond_family(family: TraceModel, with_task: TraceModel, task: str, run: Trace) -> bool:
    """Whether a run is better than any interval of the family began: by its level, not by its last value alone.

    Args:
        family: the model of the known tasks.
        with_task: the same with the new task, and the observations of its run.
        task: its name.
        run: up to now.
    """
    best = float(family.encoder.inputs(family.segments)[:, 0].max())
    zero = Normals.zeros(with_task.link.latents, 1, 1)
    state = with_task.run_state(with_task.encoder.task_number(task), zero, replace(run, task=task))
    return float(state.values[0]) > best


def rate_limit(space: Space, before: Schedule, *, beyond: bool, last: bool) -> RateLimit:
    """The limit of the next interval's rate.

    Args:
        space: the schedules searched.
        before: what was run so far.
        beyond: whether the run is better than all known ones: then its rate is not raised.
        last: whether no interval comes after: then the rate is not raised above every rate of the run.
    """
    x = np.clip(space.lr_range.to_unit(before.multipliers), 0.0, 1.0)
    if beyond:
        return RateLimit(float(x[-1]), because("beyond known runs"))
    if last:
        return RateLimit(float(x.max()), because("last interval"))
    return RateLimit()
