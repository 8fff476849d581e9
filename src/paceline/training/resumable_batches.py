"""Batches, epoch after epoch, with a position that can be saved and returned to."""

from collections.abc import Iterable, Iterator
from typing import Any

from paceline.errors import TrainingError
from paceline.training.device_batches import DeviceBatches
from paceline.training.randomness import Randomness, get_random_state


class ResumableBatches:
    """Epoch after epoch over a source of batches.

    `position` is the number of batches taken in this epoch, -1 before it has begun. `epoch_random_state` is the global
    random state at the start of the epoch.

    Args:
        source: a DataLoader, or any iterable that starts anew each time it is iterated.
        randomness: the fork's random state; it must be active while batches are taken.
    """

    def __init__(self, source: Iterable[Any], randomness: Randomness) -> None:
        self.source, self._randomness = source, randomness
        self.position, self.epoch_random_state = -1, randomness.state
        self._iterator: Iterator[Any] = iter(())

    def next(self) -> Any:
        """The next batch; a new epoch begins when the last one is over."""
        for _ in range(2):
            if self.position < 0:
                self.begin_epoch()
                self._iterator = iter(self.source)
            try:
                batch = next(self._iterator)
            except StopIteration:
                self.position = -1
                continue
            self.position += 1
            return batch
        raise TrainingError(
            "batches is empty: expected a DataLoader, or an iterable that can be iterated again and again"
        )

    def begin_epoch(self) -> None:
        """Record that an epoch begins with the present random state."""
        self.epoch_random_state, self.position = get_random_state(), 0

    def restart(self) -> None:
        """Make the next batch the first of a new epoch."""
        self.position = -1

    def state_dict(self) -> dict[str, Any]:
        """The position, and the random state that the epoch began with."""
        return {"in_pass": self.position, "pass_generators": self.epoch_random_state}

    def set_position(self, state: dict[str, Any]) -> None:
        """Take over a position without preparing batches, for code that gets the epoch's batches in another way."""
        self.epoch_random_state, self.position = state["pass_generators"], int(state["in_pass"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a position. Batches before it are drawn again, with the same random numbers, and skipped."""
        self.set_position(state)
        if self.position < 0:
            return
        self._randomness.state = self.epoch_random_state
        with self._randomness.activate():
            if isinstance(self.source, DeviceBatches):
                self._iterator = self.source.epoch(self.position)
                return
            self._iterator = iter(self.source)
            for _ in range(self.position):
                next(self._iterator)
