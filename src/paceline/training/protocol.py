"""What a training must be able to do to be tuned."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from paceline.traces import Schedule

Observation = tuple[int, "float | dict[str, float]"]


def values_by_weights(value: "float | dict[str, float]") -> dict[str, float]:
    """The values of an observation, by the weights they belong to. A plain number belongs to the raw weights."""
    return value if isinstance(value, dict) else {"raw": value}


@runtime_checkable
class Training(Protocol):
    """One run that can be advanced, copied and continued, in any framework.

    `advance` trains to `stop` at the rates of `schedule` and yields (steps done, value) on the way. The value is a
    number, or a dict with "raw" and "averaged". The state is everything that decides how the run continues: loading it
    into another training of the same kind continues the same run. A state holds tensors, arrays, numbers, strings,
    lists and dicts. Tensors come back on the CPU, and arrays of NumPy or JAX as NumPy's. If the best weights are kept,
    `state_dict` is also called while `advance` waits at a yield, and must be complete there.
    """

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train to step `stop` and yield observations."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the run continues."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        ...


@runtime_checkable
class Evaluating(Protocol):
    """A training that says whether its values are of data that it does not train on. Then its best weights are kept."""

    @property
    def evaluates(self) -> bool:
        """Whether values come from an evaluation; False if they are losses of the training itself."""
        ...


@runtime_checkable
class Reseedable(Protocol):
    """A training that can restart its random numbers, so that a clone sees other batches than its parent."""

    def reseed(self, seed: int) -> None:
        """Start all random numbers from this seed."""
        ...


class StepTimes(NamedTuple):
    """How long things take, in seconds.

    Args:
        step: one update.
        evaluation: of all weights that are evaluated; 0 without `evaluate`.
    """

    step: float
    evaluation: float


class ExpectedTime(NamedTuple):
    """How long a study is expected to take, in seconds.

    Args:
        training: of all steps.
        evaluation: of all evaluations.
        observations: how many there are.
    """

    training: float
    evaluation: float
    observations: int


@runtime_checkable
class Timed(Protocol):
    """A training that measures itself before a study, and says what its time goes into."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds so far by what they were spent on, such as "evaluation"; the rest was training."""
        ...

    def measure(self) -> None:
        """Measure how long things take, before the first state of a study is saved."""
        ...

    def expected_seconds(self, intervals: Sequence[tuple[int, int, int]], steps: int) -> ExpectedTime | None:
        """How long a study of runs of `steps` takes; None if nothing was measured.

        Each interval is how many forks train from which step to which.
        """
        ...
