"""The actors that run on the nodes of a cluster: workers, and the one that writes the study's checkpoints.

A state travels as the bytes of its checkpoint. So what is cloned, saved and continued is the same, byte for byte. A
worker yields the steps of its observations, then its report, then the state. The calling process owns these objects, so
they outlive the worker.
"""

import sys
import time
import traceback
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from jaxtyping import UInt8
from ray import cloudpickle

from paceline.errors import TrainingError
from paceline.runner.base import Factories
from paceline.runner.fingerprint import Fingerprint
from paceline.runner.local import Local
from paceline.runner.ray.errors import NODE_TRACEBACK, pack_exception, packed_errors
from paceline.runner.ray.storage import Storage
from paceline.runner.user_errors import users_traceback
from paceline.study import Interval, KeepRule, Report
from paceline.training import pack_checkpoint, require_checkpoint, set_random_state, unpack_checkpoint, write_checkpoint

MESSAGE_PERIOD = 0.05  # seconds between two messages about steps; each costs a fraction of a millisecond


class Worker:
    """Trains intervals, one at a time, with a training of its own."""

    def start(
        self,
        factory: bytes,
        search_path: Sequence[str],
        threads: int,
        storage: Storage | None,
        random_state: dict[str, Any],
        seed: int,
    ) -> str:
        """Build the training, from the same random state on all workers. Returns the id of the node."""
        sys.path.extend(path for path in search_path if path not in sys.path)
        torch.set_num_threads(threads)
        self._storage, self._packed = storage, None
        set_random_state(random_state)
        try:
            make_training = _read_factory(factory)
            with packed_errors():
                self._local = Local(make_training, save=self._save, load=self._load)
        except TrainingError as error:
            if error.__cause__ is not None:  # the cause does not travel with the error
                last = traceback.extract_tb(error.__cause__.__traceback__)[-1]
                error.add_note(f"at {last.filename}, line {last.lineno}")
                setattr(error, NODE_TRACEBACK, users_traceback(error.__cause__))
            raise
        self._local.attach(self._local.checkpoints, seed)
        return str(ray.get_runtime_context().get_node_id())

    def evaluates(self) -> bool:
        """Whether the training says that its values come from an evaluation."""
        return self._local.evaluates()

    def fingerprint(self, task: int) -> Fingerprint | None:
        """What the training of a task consisted of when it was built."""
        return self._local.fingerprint(task)

    def run(
        self, interval: Interval | None, target: Path, packed: Any, task: int = 0, rule: KeepRule | None = None
    ) -> Generator[Any]:
        """Train an interval; without one, return the initial state of a task.

        `packed` is the state that the interval begins from, None if it is loaded already or in the storage. Yields
        lists of steps, then the report, then the packed states: of the end unless the interval failed, and of the best
        moment if `rule` asks for it.
        """
        self._packed, self._saved = packed, list[Any]()
        self._local.keep_rule = lambda _: rule
        with packed_errors():
            self._local.turn_to(task)
        if interval is None:
            self._local.measure()
            self._save(self._local.training.state_dict(), target)
            report = Report(task, 0, 0, (), {})
        else:
            report = yield from self._train(interval)
        yield pack_exception(report)
        for packed_state in self._saved:  # noqa: UP028 - Ray sends values in, which a list does not take
            yield packed_state
        self._packed, self._saved = None, []

    def _train(self, interval: Interval) -> Generator[list[int], None, Report]:
        """Yield steps in lists, since each is a message to the process that runs the study."""
        observations, steps, sent = self._local.train(interval), list[int](), 0.0
        while True:
            try:
                steps.append(next(observations))
            except StopIteration as end:
                return end.value
            if time.monotonic() - sent > MESSAGE_PERIOD:
                yield steps
                steps, sent = [], time.monotonic()

    def _save(self, state: dict[str, Any], target: Path) -> None:
        packed = np.frombuffer(pack_checkpoint(state, target), np.uint8)  # an array travels and is read without a copy
        self._saved.append(packed)
        if self._storage is not None:
            self._storage.write(target.name, packed)

    def _load(self, origin: Path) -> dict[str, Any]:
        if self._packed is None and self._storage is not None:
            return unpack_checkpoint(self._storage.read(origin.name), origin)
        return unpack_checkpoint(self._packed, origin)


class CheckpointActor:
    """Writes and reads the checkpoints in the study's folder, which the process that runs the study never loads."""

    def write(self, packed: Any, path: Path) -> None:
        """Save a state that came through the object store."""
        write_checkpoint(path, lambda file: file.write(packed))

    def read(self, path: Path) -> UInt8[np.ndarray, "bytes"]:
        """Put a saved state into the object store."""
        return np.asarray(np.memmap(require_checkpoint(path), np.uint8, mode="r"))


def _read_factory(pickled: bytes) -> Factories:
    try:
        return cloudpickle.loads(pickled)
    except Exception as error:
        raise TrainingError(
            f"the training factory could not be read on a node ({type(error).__name__}: {error}): install its module "
            "there, or let ray bring it, ray.init(runtime_env={'working_dir': '.'})"
        ) from error
