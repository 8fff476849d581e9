"""A training that says how far it is while an interval runs, for live views."""

from collections.abc import Callable, Iterator
from typing import Any

from paceline.traces import Schedule
from paceline.training.protocol import Observation, Reseedable, Training


class Watched:
    """Another training, with every step that it observes passed on.

    Args:
        training: the training.
        on_step: called with the number of updates done, at each observation.
    """

    def __init__(self, training: Training, on_step: Callable[[int], None]) -> None:
        self._training, self._on_step = training, on_step

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`."""
        for step, value in self._training.advance(schedule, stop):
            self._on_step(step)
            yield step, value

    def state_dict(self) -> dict[str, Any]:
        """The training's own state."""
        return self._training.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._training.load_state_dict(state)

    def reseed(self, seed: int) -> None:
        """Start all randomness from this seed, where the training can."""
        if isinstance(self._training, Reseedable):
            self._training.reseed(seed)


def watched(make_training: Callable[[], Training], on_step: Callable[[int], None]) -> Callable[[], Training]:
    """The same factory, watched; what is no training comes back as it is, for the runner to refuse."""

    def make() -> Any:
        training: Any = make_training()
        return Watched(training, on_step) if isinstance(training, Training) else training

    return make
