"""Several forks in lockstep: one replayed step of each in turn, and observations of all at the same time."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from paceline.errors import PacelineError, TrainingError
from paceline.runner.base import ObservationBuffer
from paceline.runner.best_of_interval import BestOfInterval
from paceline.runner.user_errors import failure_of
from paceline.study import Failure, Interval, Report
from paceline.training import RecordedTraining


@dataclass(slots=True, eq=False)
class RunningFork:
    """An interval, the recorded training that runs it, and its best moment so far."""

    interval: Interval
    recorded: RecordedTraining
    best: BestOfInterval
    observations: ObservationBuffer = field(init=False)
    failure: Failure | None = None

    def __post_init__(self) -> None:
        self.observations = ObservationBuffer(self.interval)

    @property
    def steps_done(self) -> int:
        """Updates of the run so far."""
        return self.recorded.training.steps_done

    @property
    def observes_start(self) -> bool:
        """Whether to observe the untrained weights, as a training with `evaluate` does."""
        training = self.recorded.training
        return self.steps_done == 0 and training.evaluate is not None and training.untrained is None

    @property
    def steps_to_observation(self) -> int:
        """Steps to the next observation; 0 if the interval is over or has failed."""
        if self.failure is not None:
            return 0
        target = self.recorded.training.next_observation(self.interval.schedule, self.interval.stop)
        return target - self.steps_done

    def add_untrained(self) -> bool:
        """Add the values of the untrained weights, if they are known. Returns whether they are."""
        untrained = self.recorded.training.untrained
        if self.steps_done > 0 or untrained is None:
            return False
        self._add(0, untrained)
        return True

    def queue_observation(self) -> None:
        """Queue an observation of the present weights."""
        with self._catch_failure():
            self.recorded.observe()

    def read_observation(self) -> None:
        """Wait for the observation and add it, and that of step 0 if it comes with it."""
        with self._catch_failure():
            observed = self.recorded.observations() if self.failure is None else []
            for step, value in observed:
                self._add(step, value)

    def _add(self, step: int, value: "float | dict[str, float]") -> None:
        self.failure = self.failure or self.observations.add(step, value)
        if self.failure is None:
            self.best.offer(step, self.observations.latest, self.recorded.copy_state)
            self.failure = self.best.turn(self.observations.steps, self.observations.columns)

    def report(self) -> Report:
        """The report on the interval."""
        return self.observations.report(self.failure, self.best.step_after(self.failure))

    @contextmanager
    def _catch_failure(self) -> Generator[None]:
        """Let an error of a user's `evaluate` fail this fork only. After an error of the GPU itself, none can go on."""
        try:
            yield
        except PacelineError:
            raise
        except torch.OutOfMemoryError as error:
            self.failure = failure_of(error)
            warnings.warn(
                f"streams: fork {self.interval.fork} ran out of GPU memory while it was evaluated: ask for fewer forks "
                "at a time (forks=)",
                stacklevel=2,
            )
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            self.failure = failure_of(error)


def replay_to_observation(forks: Sequence[RunningFork]) -> None:
    """Train each fork to its next observation, one step of each in turn, and wait for all of them."""
    with gpu_errors():
        counts = [(fork.recorded, fork.steps_to_observation) for fork in forks]
        for i in range(max(count for _, count in counts)):
            for recorded, count in counts:
                if i < count:
                    recorded.step()
        for recorded, _ in counts:
            recorded.stream.synchronize()


def observe(forks: Sequence[RunningFork]) -> None:
    """Observe all forks: queue all observations first, then wait for each."""
    with gpu_errors():
        for fork in forks:
            fork.queue_observation()
        for fork in forks:
            fork.read_observation()


@contextmanager
def gpu_errors() -> Generator[None]:
    """Turn errors of the GPU into a TrainingError with advice. A process cannot use the GPU any more after one."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            "the GPU's memory ran out after the steps were recorded: ask for fewer forks at a time (forks=), the study "
            "continues from the last checkpoints"
        ) from error
    except RuntimeError as error:
        first = next(iter(str(error).splitlines()), "")
        raise TrainingError(
            f"the GPU stopped while steps were replayed ({type(error).__name__}: {first}): start the study again, it "
            "continues from the last checkpoints; runner='local' shows the line with the error"
        ) from error
