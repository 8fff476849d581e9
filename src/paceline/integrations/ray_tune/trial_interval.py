"""An interval of a fork in a trial of Ray Tune, with what the trial has reported of it."""

import math
from dataclasses import dataclass, field

from paceline.integrations.ray_tune.trial_record import ForkState
from paceline.study import Interval


@dataclass(slots=True)
class TrialInterval:
    """An interval that a trial runs, or is to run.

    Args:
        interval: what to train.
        origin: the state that it begins from.
        steps: iterations that the trial has reported.
        values: the value at each of them.
        failure: why it cannot be finished; empty if it can.
    """

    interval: Interval
    origin: ForkState
    steps: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    failure: str = ""

    def observe(self, step: int, value: float) -> None:
        """Add an iteration. One that was reported before, as after a restart, counts once."""
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            self.values.append(value)

    @property
    def is_sound(self) -> bool:
        """Whether every value is finite."""
        return all(math.isfinite(value) for value in self.values)

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to come: it has reached its end, or a value is not finite."""
        return bool(self.steps) and (self.steps[-1] >= self.interval.stop or not self.is_sound)
