"""What a runner is given, and what it gives back: intervals in, reports out."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError, TrainingError
from paceline.runner.fingerprint import Fingerprint
from paceline.runner.stopwatch import Stopwatch
from paceline.runner.user_errors import failure_of
from paceline.study import Checkpoints, Failure, Interval, KeepRule, Report, failure_of_values
from paceline.training import ExpectedTime, Training, values_by_weights

Factory = Callable[[], Training]
Factories = Factory | Sequence[Factory]  # of one training, or of each task of a family
LONGEST_QUOTE = 200  # characters of a value that an error shows


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
    """The observations of an interval, as they come in, each checked: a training of one's own may yield anything.

    Args:
        interval: what is trained.
    """

    def __init__(self, interval: Interval) -> None:
        self.interval = interval
        self.steps: list[int] = []
        self._columns: dict[str, list[float]] = {}

    def add(self, step: Any, value: Any) -> Failure | None:
        """Add an observation. A failure comes back if it is none, or if its value cannot be learnt from."""
        values = _values_by_name(value)
        wrong = self._wrong_step(step) or _wrong_values(value, values)
        if wrong:
            return failure_of(TrainingError(f"advance() must yield {wrong}"))
        failure = failure_of_values(list(values.values()), int(step))
        if self._columns and values.keys() != self._columns.keys():
            if failure is None:
                kinds, before = _names(values), _names(self._columns)
                wrong = f"the same kinds of values at each step, got {kinds} at step {step:,}, and {before} before"
                return failure_of(TrainingError(f"advance() must yield {wrong}"))
            values = dict.fromkeys(self._columns, math.nan)  # a run that is lost may yield no more than a plain NaN
        self.steps.append(int(step))
        for weights, number in values.items():
            self._columns.setdefault(weights, []).append(number)
        return failure

    def _wrong_step(self, step: Any) -> str:
        """What is wrong with a step; empty if it lies in the interval after those before it."""
        start = self.interval.start
        before = self.steps[-1] if self.steps else start or -1  # a run may be observed before its first step
        with suppress(TypeError, ValueError, OverflowError):
            if int(step) == step and before < step <= self.interval.stop:
                return ""
        return (
            f"steps that increase, here from {before + 1:,} to {self.interval.stop:,}: the number of updates since the "
            f"start of the run, got {_quoted(step)}"
        )

    @property
    def columns(self) -> dict[str, list[float]]:
        """All values, by weights."""
        return self._columns

    @property
    def latest(self) -> dict[str, float]:
        """The values of the latest observation, by weights."""
        return {weights: column[-1] for weights, column in self._columns.items() if len(column) == len(self.steps)}

    def report(self, failure: Failure | None = None, kept: int | None = None) -> Report:
        """The report on the interval; `kept` is the step whose state was kept as the best."""
        interval = self.interval
        values = {weights: tuple(column) for weights, column in self._columns.items()}
        last = self.steps[-1] if self.steps else interval.start
        stop = interval.stop if failure is None else last
        return Report(interval.fork, interval.start, stop, tuple(self.steps), values, failure, kept)


def _values_by_name(value: Any) -> dict[str, float]:
    """The values of an observation, by weights; empty if they are no numbers."""
    with suppress(TypeError, ValueError, RuntimeError):
        return {weights: float(number) for weights, number in values_by_weights(value).items()}
    return {}


def _wrong_values(value: Any, values: dict[str, float]) -> str:
    """What is wrong with what was yielded as a value; empty if nothing is."""
    if values and values.keys() <= {"raw", "averaged"}:
        return ""
    return f'(step, value), the value a number or a dict with "raw" and "averaged", got {_quoted(value)}'


def _quoted(value: Any) -> str:
    return " ".join(repr(value).split())[:LONGEST_QUOTE]


def _names(values: Iterable[str]) -> str:
    return " and ".join(sorted(values))


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

    def fingerprint(self, task: int, *, may_build: bool = True) -> Fingerprint | None:
        """What the training of a task consists of; None if that is not known, or has to be built and may not."""
        return None

    def expected_seconds(self, intervals: Sequence[tuple[int, int, int]], steps: int) -> ExpectedTime | None:
        """How long a study of runs of `steps` takes; None if it is not known.

        Each interval is how many forks train from which step to which.
        """
        return None

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
