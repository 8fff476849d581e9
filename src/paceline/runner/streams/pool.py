"""The recorded trainings that forks use in turn: as many as are wanted and fit into the GPU's memory.

A recorded training can take over the state of any fork of its task. So a study with twelve forks, of which at most
eight train at a time, needs eight.
"""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from paceline.errors import TrainingError
from paceline.runner.base import Factory
from paceline.runner.fingerprint import Fingerprint, fingerprint_of_training
from paceline.runner.fresh_training import note_trained, refuse_shared_weights, refuse_trained
from paceline.runner.local import build
from paceline.training import (
    CudaWorkStream,
    DeviceBatches,
    NotRecordableError,
    Randomness,
    RecordedTraining,
    WorkStream,
    check_recordable,
    get_random_state,
)


class RecordingPool:
    """Recorded trainings, by task.

    Attributes:
        loaded: the recorded training that holds the state of a checkpoint, by the checkpoint's path.
        bytes_per_fork: GPU memory of one recorded training.
        fingerprints: what the training of each task consists of.

    Args:
        factories: build a training of each task.
        make_stream: makes the queue of a training's work.
        forks: how many to have at a time, exactly; None has as many as are wanted and fit.
    """

    def __init__(
        self, factories: tuple[Factory, ...], make_stream: Callable[[torch.device], WorkStream], forks: int | None
    ) -> None:
        self._factories, self._make_stream = factories, make_stream
        self._is_exact, self._limit = forks is not None, forks
        self._trainings: dict[int, list[RecordedTraining]] = {}
        self._random_states: dict[int, dict[str, Any]] = {}
        self.loaded: dict[Path, RecordedTraining] = {}
        self.bytes_per_fork = 0
        self.fingerprints: dict[int, Fingerprint] = {}

    def __len__(self) -> int:
        return sum(map(len, self._trainings.values()))

    def of_task(self, task: int) -> list[RecordedTraining]:
        """The recorded trainings of a task."""
        return list(self._trainings.get(task, ()))

    def fill(self, forks: Counter[int]) -> None:
        """Have a recorded training for each fork of each task, as far as they fit.

        Raises NotRecordableError if the steps of a task cannot be recorded.
        """
        while (task := self._next_task(forks)) is not None:
            if self._limit is not None and len(self) >= self._limit and not self._remove_idle(forks):
                return
            try:
                self._add(task)
            except torch.OutOfMemoryError as error:
                if not self._remove_idle(forks):
                    self._limit_to_present(forks.total(), error)
                    return

    def clear(self) -> None:
        """Remove all recorded trainings."""
        for trainings in self._trainings.values():
            for recorded in trainings:
                note_trained(recorded.training)
        self._trainings.clear()
        self.loaded.clear()
        release_memory()

    def _next_task(self, forks: Counter[int]) -> int | None:
        """The task with the smallest share of the trainings that it needs; None if no task needs more."""
        shares = {task: len(self._trainings.get(task, ())) / count for task, count in forks.items()}
        task = min(shares, key=lambda task: shares[task])
        return task if shares[task] < 1 else None

    def _remove_idle(self, tasks: Iterable[int]) -> bool:
        """Remove the trainings of another task than these; False if there is none."""
        idle = next((task for task, trainings in self._trainings.items() if trainings and task not in tasks), None)
        if idle is None:
            return False
        remaining = [training for task, trainings in self._trainings.items() if task != idle for training in trainings]
        self.loaded = {path: training for path, training in self.loaded.items() if training in remaining}
        del self._trainings[idle]
        release_memory()
        return True

    def _add(self, task: int) -> None:
        with self._same_random_state(task):
            training, batches = check_recordable(build(self._factories[task]))
        refuse_shared_weights(training, [one.training for trainings in self._trainings.values() for one in trainings])
        refuse_trained(training)
        self.fingerprints.setdefault(task, fingerprint_of_training(training))
        device, others = batches.device, self._trainings.setdefault(task, [])
        if self._make_stream is CudaWorkStream and device.type != "cuda":
            raise NotRecordableError(f"the model is on the {device}, which is not a GPU")
        if others:
            _share_data(batches, others[0].batches)
        before = _used_bytes(device)
        others.append(RecordedTraining(training, self._make_stream(device)))
        self.bytes_per_fork = _used_bytes(device) - before

    @contextmanager
    def _same_random_state(self, task: int) -> Generator[None]:
        """Let every call of a factory draw the random numbers of the first one, so that forks see the same data."""
        if task not in self._random_states:
            self._random_states[task] = get_random_state()
            yield
            return
        first = Randomness()
        first.state = self._random_states[task]
        with first.activate():
            yield

    def _limit_to_present(self, wanted: int, error: Exception) -> None:
        """Continue with the trainings that fitted, unless the user asked for a number of them."""
        count = len(self)
        release_memory()
        if count == 0:
            raise TrainingError(
                f"not one fork fits into the GPU's memory ({error}): make the batch or the model smaller"
            ) from error
        size = f"{self.bytes_per_fork / 1e6:,.0f} MB each"
        message = f"{count} of {wanted} forks fit into the GPU's memory at a time, {size}"
        if self._is_exact:
            raise TrainingError(
                f"{message}, and {self._limit} were asked for: ask for {count}, or leave forks out"
            ) from error
        warnings.warn(f"streams: {message}: the others wait for their turn", stacklevel=4)
        self._limit = count


def _share_data(batches: DeviceBatches, first: DeviceBatches) -> None:
    """Keep one copy of data that the factory made again. Forks with different data cannot be compared."""
    new, shared = batches.tensors, first.tensors
    same_form = [(t.shape, t.device) for t in new] == [(t.shape, t.device) for t in shared]
    if same_form and all(map(torch.equal, new, shared)):
        batches.tensors = shared
        return
    warnings.warn(
        "the training factory makes different data each time it is called: forks cannot be compared, build the data "
        "outside of it, or with a seed",
        stacklevel=2,
    )


def _used_bytes(device: torch.device) -> int:
    """Bytes of the GPU's memory that are in use."""
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def release_memory() -> None:
    """Return GPU memory that nothing refers to any more, including what only reference cycles hold."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
