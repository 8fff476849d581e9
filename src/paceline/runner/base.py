"""What a runner is given, and what it gives back: intervals in, reports out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.runner.stopwatch import Stopwatch
from paceline.study import Checkpoints, Failure, Interval, KeepRule, Report, failure_of_values
from paceline.training import Training, values_by_weights

Factory = Callable[[], Training]
Factories = Factory | Sequence[Factory]  # of one training, or of each task of a family


def by_task(make_training: Factories) -> tuple[Factory, ...]:
    """A factory for each task; a single one is that of the first."""
    if callable(make_training):
        return (make_training,)
    if not isinstance(make_training, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            "expected a function that takes no arguments and builds one run, got a "
            f"{type(make_training).__name__}: pass the function itself, `training` and not `training()`"
        )
    return tuple(make_training)


class ObservationBuffer:
    """The observations of an interval, as they come in."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self._columns: dict[str, list[float]] = {}

    def add(self, step: int, value: "float | dict[str, float]") -> Failure | None:
        """Add an observation. A failure comes back if its value cannot be learnt from."""
        values = {weights: float(number) for weights, number in values_by_weights(value).items()}
        self.steps.append(int(step))
        for weights, number in values.items():
            self._columns.setdefault(weights, []).append(number)
        return failure_of_values(list(values.values()), int(step))

    @property
    def columns(self) -> dict[str, list[float]]:
        """All values, by weights."""
        return self._columns

    @property
    def latest(self) -> dict[str, float]:
        """The values of the latest observation, by weights."""
        return {weights: column[-1] for weights, column in self._columns.items() if len(column) == len(self.steps)}

    def report(self, interval: Interval, failure: Failure | None = None, kept: int | None = None) -> Report:
        """The report on the interval; `kept` is the step whose state was kept as the best."""
        values = {weights: tuple(column) for weights, column in self._columns.items()}
        last = self.steps[-1] if self.steps else interval.start
        stop = interval.stop if failure is None else last
        return Report(interval.fork, interval.start, stop, tuple(self.steps), values, failure, kept)


class Runner(ABC):
    """Trains the intervals of a round. Reports come back in any order, each after its checkpoint is safe.

    Attributes:
        checkpoints: where states are kept; `attach` sets it.
        stopwatch: counts the seconds spent on "training" and on "checkpoint".
        on_step: called with (fork, step) at each observation.
        keep_rule: says which observations of an interval are so good that their state is kept; None for none.
        is_named: says whether the journal names a state, by fork and step. No other file is ever deleted.
    """

    reads_storage: ClassVar[bool] = False

    def __init__(self) -> None:
        self.checkpoints, self.seed = Checkpoints(Path("checkpoints")), 0
        self.stopwatch = Stopwatch()
        self.on_step: Callable[[int, int], None] = _ignore
        self.keep_rule: Callable[[Interval], KeepRule | None] = _keep_none
        self.is_named: Callable[[int, int], bool] = _names_all

    def attach(self, checkpoints: Checkpoints, seed: int) -> None:
        """Work for a study: keep states there, and draw randomness from its seed."""
        self.checkpoints, self.seed = checkpoints, seed

    @abstractmethod
    def prepare(self, task: int = 0) -> None:
        """Write the state that every new run of a task begins from, unless it is there."""

    @abstractmethod
    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train all intervals."""

    def evaluates(self) -> bool:
        """Whether the trainings say that their values come from an evaluation; False if they do not say."""
        return False

    def clone_seed(self, interval: Interval) -> int | None:
        """The seed of a clone, which draws other random numbers than its parent; None if the fork just goes on."""
        if interval.parent is None:
            return None
        return int(np.random.SeedSequence([self.seed, interval.fork, interval.start]).generate_state(1)[0])

    def keep_only(self, needed: set[Path]) -> None:
        """Delete all other checkpoints, torn ones too, while nothing trains. Other files are left alone."""
        files = self.checkpoints.files()
        self.checkpoints.delete(
            path for state, path in files if self.checkpoints.path(*state) not in needed and self.is_named(*state)
        )

    def discard(self, paths: set[Path]) -> None:
        """Delete these checkpoints, if they are there, while forks train that may write others at any time."""
        self.checkpoints.delete(paths)

    def fetch(self, path: Path) -> None:  # noqa: B027  nothing to do if checkpoints are in the folder
        """Bring a checkpoint into the study's folder, if it is kept elsewhere."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Release what it holds."""


def _ignore(fork: int, step: int) -> None: ...


def _keep_none(interval: Interval) -> None: ...


def _names_all(fork: int, step: int) -> bool:
    return True
