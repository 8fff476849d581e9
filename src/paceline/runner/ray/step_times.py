"""How long intervals take, and when one counts as slow."""

import statistics


class StepTimes:
    """Seconds per step of the intervals that were finished.

    Args:
        patience: an interval is slow if it takes this many times the median of the others, per step.
        slow_after: seconds below which no interval is slow.
    """

    def __init__(self, patience: float, slow_after: float) -> None:
        self.patience, self.slow_after = patience, slow_after
        self._seconds_per_step: list[float] = []

    def add(self, seconds: float, steps: int) -> None:
        """Add an interval that was finished."""
        self._seconds_per_step.append(seconds / max(steps, 1))

    def is_slow(self, seconds: float, steps: int) -> bool:
        """Whether an interval of so many steps should be finished by now."""
        if not self._seconds_per_step or seconds < self.slow_after:
            return False
        return seconds >= self.patience * max(steps, 1) * statistics.median(self._seconds_per_step)
