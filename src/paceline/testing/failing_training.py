"""A training that fails on purpose. It has a module of its own, so that workers in other processes can import it."""

from collections.abc import Iterator

from paceline.problems import Quadratic, QuadraticTraining
from paceline.traces import Schedule
from paceline.training import Observation


class FailingTraining(QuadraticTraining):
    """Trains until its third observation, then raises at one rate and reports NaN at another.

    Args:
        raises_at: the rate at which it raises.
        not_finite_at: the rate at which its value is not a number.
    """

    def __init__(self, raises_at: float, not_finite_at: float) -> None:
        super().__init__(Quadratic(dims=20), every=2)
        self.raises_at, self.not_finite_at = raises_at, not_finite_at

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`, or fail."""
        for count, (step, value) in enumerate(super().advance(schedule, stop), start=1):
            rate = schedule(step - 1)
            if count == 3 and rate == self.raises_at:
                raise ValueError("the training of this fork raises on purpose")
            if count == 3 and rate == self.not_finite_at:
                value = float("nan")
            yield step, {"raw": value, "averaged": value} if isinstance(value, float) else value
