"""Where a run is in its data: which pass, how far into it, and the randomness that the pass began with."""

from collections.abc import Iterable, Iterator
from typing import Any

from paceline.errors import TrainingError
from paceline.training.device_batches import DeviceBatches
from paceline.training.randomness import Randomness, global_state


class Passes:
    """Pass after pass over batches, each begun when the one before ends.

    `position` counts the batches taken in this pass, -1 before it has begun; `began` is its random state at the start.

    Args:
        batches: a DataLoader or any iterable that can be gone through again.
        randomness: the fork's own, in force while batches are taken.
    """

    def __init__(self, batches: Iterable[Any], randomness: Randomness) -> None:
        self.batches, self._randomness = batches, randomness
        self.position, self.began = -1, randomness.state
        self._iterator: Iterator[Any] = iter(())

    def next(self) -> Any:
        """The next batch."""
        for _ in range(2):
            if self.position < 0:
                self.begin()
                self._iterator = iter(self.batches)
            try:
                batch = next(self._iterator)
            except StopIteration:
                self.position = -1
                continue
            self.position += 1
            return batch
        raise TrainingError("batches gave nothing: expected a DataLoader or an iterable that can be gone through again")

    def begin(self) -> None:
        """Note that a pass begins, with the random state as it is."""
        self.began, self.position = global_state(), 0

    def restart(self) -> None:
        """Let the next batch begin a new pass."""
        self.position = -1

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        return {"in_pass": self.position, "pass_generators": self.began}

    def place(self, state: dict[str, Any]) -> None:
        """Be where a state was, for whoever takes the batches of the pass by other means."""
        self.began, self.position = state["pass_generators"], int(state["in_pass"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where a state was; the batches before it are gone through again, with the same randomness."""
        self.place(state)
        if self.position < 0:
            return
        self._randomness.state = self.began
        with self._randomness.taken():
            if isinstance(self.batches, DeviceBatches):
                self._iterator = self.batches.passing(self.position)
                return
            self._iterator = iter(self.batches)
            for _ in range(self.position):
                next(self._iterator)
