"""What a runner is given and what it gives back."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.runner.stopwatch import Stopwatch
from paceline.traces import Schedule
from paceline.traces.trace import is_sound, why_unsound
from paceline.training import Training, values_by_weights

Factory = Callable[[], Training]
Factories = Factory | Sequence[Factory]  # of one training, or of each task of a family


def by_task(make_training: Factories) -> tuple[Factory, ...]:
    """A factory for each task; a single one is that of the first."""
    if callable(make_training):
        return (make_training,)
    if not isinstance(make_training, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            "expected a function that is called with nothing and builds one run, got a "
            f"{type(make_training).__name__}: pass the function itself, `training` and not `training()`"
        )
    return tuple(make_training)


@dataclass(frozen=True, slots=True)
class Task:
    """One interval of one fork.

    Args:
        fork: its number.
        origin: checkpoint to begin from.
        target: checkpoint to leave behind.
        stop: the step to train to.
        schedule: the learning rate.
        seed: start all randomness anew from this seed, for a clone; None goes on with the state's own.
        start: the step of `origin`.
        task: number of the task of a family.
    """

    fork: int
    origin: Path
    target: Path
    stop: int
    schedule: Schedule
    seed: int | None
    start: int = 0
    task: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What an interval showed; `failure` is empty where it was finished."""

    fork: int
    steps: tuple[int, ...]
    values: dict[str, tuple[float, ...]]
    failure: str = ""


class Noted:
    """What an interval shows, as it goes on."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self._columns: dict[str, list[float]] = {}

    def add(self, step: int, value: "float | dict[str, float]") -> str:
        """Take an observation in; what is wrong with it, or nothing."""
        values = values_by_weights(value)
        self.steps.append(int(step))
        for of, number in values.items():
            self._columns.setdefault(of, []).append(float(number))
        sound = is_sound(np.array([float(number) for number in values.values()])).all()
        return "" if sound else why_unsound(step)  # further steps would be wasted

    def report(self, fork: int, failure: str) -> Report:
        """What it came to."""
        return Report(fork, tuple(self.steps), {of: tuple(column) for of, column in self._columns.items()}, failure)


class Runner(ABC):
    """Runs the tasks of a round; reports come back in any order, each after its checkpoint is safe on disk.

    `stopwatch` counts what it spends on "training" and on "checkpoint"; `on_step` is told (fork, step) as they go.
    """

    reads_storage: ClassVar[bool] = False

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()
        self.on_step: Callable[[int, int], None] = _ignore

    @abstractmethod
    def prepare(self, start: Path, task: int = 0) -> None:
        """Write the state that every new run of a task begins from, unless it is there."""

    @abstractmethod
    def run(self, tasks: Sequence[Task]) -> Iterator[Report]:
        """Run all tasks."""

    def keep_only(self, needed: set[Path], folder: Path) -> None:
        """Delete the checkpoints that nothing can begin from any more, and torn ones, from where they are kept."""
        for path in folder.glob("*"):
            if path.with_name(path.name.removesuffix(".tmp")) not in needed:
                path.unlink(missing_ok=True)

    def fetch(self, path: Path) -> None:  # noqa: B027  nothing to do where checkpoints are in the folder
        """Bring a checkpoint into the study's folder, where it is kept elsewhere."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Let go of what it holds."""


def _ignore(fork: int, step: int) -> None: ...
