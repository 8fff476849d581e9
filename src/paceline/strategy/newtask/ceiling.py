"""How high the next rate of a new task may be: a rise is what a family's forecasts are wrong about.

A run that stands better than any known one ever did is forecast from intervals that began worse, where a higher rate
still gained; and a rise in the last interval is one that nothing can mend. Rates that fall do no such harm: the run
stays about where it is. Elsewhere a plan is run as it is (docs/research.md has what was measured).
"""

from dataclasses import dataclass, replace

import numpy as np

from paceline.model import Normals, TraceModel
from paceline.strategy.multitask import Space
from paceline.traces import Schedule, Trace


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The highest x of the next interval, in [0, 1] of the bounds, and why; without a reason where nothing is held."""

    x: float = 1.0
    reason: str = ""

    def held(self, x: float) -> tuple[float, str]:
        """x or the ceiling, whichever is lower, and the reason where that is the ceiling."""
        return (self.x, self.reason) if x > self.x + 1e-9 else (x, "")  # rates come back from the log scale rounded


def beyond(family: TraceModel, located: TraceModel, task: str, run: Trace) -> bool:
    """Whether a run stands better than any interval of the family began, by its level and not by its last value alone.

    Args:
        family: the model of the known tasks.
        located: the same with the new task, and what its run has shown.
        task: its name.
        run: up to now.
    """
    best = float(family.encoder.inputs(family.segments)[:, 0].max())
    still = Normals.none(located.link.latents, 1, 1)
    stands = located.run_state(located.encoder.task_number(task), still, replace(run, task=task))
    return float(stands.values[0]) > best


def ceiling_of(space: Space, before: Schedule, *, outside: bool, last: bool) -> Ceiling:
    """What the next interval of a run is held to.

    Args:
        space: the schedules searched.
        before: what was run so far.
        outside: whether the run stands beyond all known ones: then its rate is not raised.
        last: whether no interval comes after: then it is not raised above every rate it has been at.
    """
    x = np.clip(space.lr_range.to_unit(before.multipliers), 0.0, 1.0)
    if outside:
        return Ceiling(float(x[-1]), "its rate is not raised: the run stands better than any known one did")
    if last:
        return Ceiling(
            float(x.max()), "its rate is not raised above all it was run at: no interval is left to mend that"
        )
    return Ceiling()
