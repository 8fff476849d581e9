"""When a run is observed: often enough to decide by, and in a share of its time.

The plan is a function of the schedule and of what one observation costs, in steps. That cost is measured once, before
the first state of a study is saved, and belongs to every state from then on. So all forks, on any runner, are observed
at the same steps, and so is a study that was killed and goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.traces import Schedule

EVALUATE_SHARE = 0.1  # of the time of a run
EVALUATIONS = 40  # of a run, and more near decisions
PER_INTERVAL = 3  # evaluations of a short interval, if they can be paid
PER_SCHEDULE = 16  # the least in a schedule of one interval, such as a range test
AT_THE_END = 5  # the last evaluations of a run, as close together as 200 evenly spaced ones
LOSSES, LEAST_LOSSES = 200, 40  # observations of a run that is judged by its training loss
SMALLEST_COST = 1 / 16


@dataclass(frozen=True, slots=True)
class ObservationPlan:
    """When a run is observed.

    Args:
        evaluates: whether an observation is an evaluation, not a mean training loss.
        every: steps between observations, if the user says so.
        share: of the time of a run that observations may take.
        cost: of one observation, in steps; 0 if it is not known.
        is_even: whether there are 200 observations at equal distances, as in studies of 0.1.0.
    """

    evaluates: bool
    every: int | None = None
    share: float = EVALUATE_SHARE
    cost: float = 0.0
    is_even: bool = False

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise InputError(
                f"every must be 1 or more, got {self.every}: it is the number of steps between observations"
            )
        if not 0 < self.share < 1:
            raise InputError(
                f"evaluate_share must lie in (0, 1), got {self.share}: 0.1 gives evaluations a tenth of the time"
            )

    def next(self, done: int, schedule: Schedule, stop: int) -> int:
        """The step of the next observation in an interval that ends at `stop`.

        Forks are compared by their last observation. So a mean training loss must not be taken over a few steps only:
        if less than half of the distance would remain until `stop`, the observation is made at `stop` instead.
        """
        if self.evaluates and self.every is None and not self.is_even:
            return min((step for step in self._evaluations(done, schedule, stop) if step > done), default=stop)
        every = self.every or self._distance_of_losses(schedule.steps)
        target = (done // every + 1) * every
        return target if stop - target >= (0 if self.evaluates else every / 2) else stop

    def count(self, start: int, stop: int, steps: int) -> int:
        """How many observations an interval of a run has."""
        points = [0, start, stop] if start else [0, stop]
        schedule, done, count = Schedule(np.ones(len(points) - 1), points, steps), start, 0
        while done < stop:
            done, count = self.next(done, schedule, stop), count + 1
        return count

    def _distance_of_losses(self, steps: int) -> int:
        affordable = self._affordable(steps)
        return max(1, steps // LOSSES) if affordable >= LOSSES else ceil(steps / max(affordable, LEAST_LOSSES))

    def _evaluations(self, done: int, schedule: Schedule, stop: int) -> set[int]:
        """The next steps of evaluations: evenly spaced, and closer together before the end of a run.

        At a change point there is always one. A family's runs have several in one interval of training.
        """
        points = [int(step) for step in schedule.change_points] if len(schedule.change_points) <= EVALUATIONS else []
        start = max((step for step in points if step <= done), default=0)
        stop, end = min((step for step in points if done < step < stop), default=stop), schedule.steps
        length, affordable = stop - start, self._affordable(stop - start)
        count = max(1, min(affordable, max(PER_INTERVAL, ceil(EVALUATIONS * length / end))))
        if length == end:
            count = max(count, PER_SCHEDULE)
        steps = {start + round(i * length / count) for i in range(1, count + 1)}
        if stop == end and affordable >= count + AT_THE_END:
            steps |= {end - round(i * end / LOSSES) for i in range(1, AT_THE_END)}
        return steps

    def _affordable(self, steps: int) -> int:
        """How many observations take their share of the time of so many steps."""
        return int(self.share * steps / self.cost) if self.cost else steps

    def with_cost(self, cost: float) -> "ObservationPlan":
        """The same plan if an observation costs so many steps.

        A measured cost is rounded up to 1, 1.4, 2, 2.8, 4, ..., so that it is mostly found again on the same machine.
        """
        return replace(self, cost=2.0 ** (ceil(2 * log2(max(cost, SMALLEST_COST))) / 2))

    def state_dict(self) -> dict[str, Any]:
        """What states hold of it."""
        return {"cost": self.cost}

    def with_state(self, state: Mapping[str, Any] | None) -> "ObservationPlan":
        """The plan of the run that a state is of; states of 0.1.0 hold none."""
        return replace(self, cost=0.0, is_even=True) if state is None else replace(self, **state)
