"""What a training must be able to do to be tuned."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from paceline.traces import Schedule

Observation = tuple[int, "float | dict[str, float]"]


def by_weights(value: "float | dict[str, float]") -> dict[str, float]:
    """The values of an observation by the weights they are of; a plain number is of the raw ones."""
    return value if isinstance(value, dict) else {"raw": value}


@runtime_checkable
class Training(Protocol):
    """One run that can be advanced, copied and continued. Any framework will do.

    `advance` trains to `stop` at the rates of `schedule` and yields (updates done, value) as it goes; the value is a
    number, or a dict with "raw" and "averaged". The state is everything that decides what comes next: loading it into
    another training of the same kind continues the same run. It holds tensors, numbers, strings, lists and dicts;
    tensors come back on the CPU.
    """

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`, yielding observations."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        ...


@runtime_checkable
class Reseedable(Protocol):
    """A training whose randomness can be started anew, so that clones see other batches than their parent."""

    def reseed(self, seed: int) -> None:
        """Start all randomness from this seed."""
        ...
