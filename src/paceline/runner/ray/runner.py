"""Forks on a cluster: one Ray actor per fork that trains, with the resources that the user asks for.

The study stays on this machine's file system. Its decisions do not depend on which worker trained which fork, how
often, or where.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray as _ray
from ray.exceptions import RayError

from paceline.errors import InputError, TrainingError
from paceline.runner.base import Factories, Runner
from paceline.runner.fingerprint import Fingerprint
from paceline.runner.ray.assignments import Assignment
from paceline.runner.ray.cluster import Cluster, ForkResources
from paceline.runner.ray.dispatch import Dispatcher
from paceline.runner.ray.pool import WorkerPool
from paceline.runner.ray.state_store import StateStore
from paceline.runner.ray.step_times import StepTimes
from paceline.runner.ray.storage import Storage, check_url, study_storage
from paceline.study import Interval, Report, describe_failure

ray: Any = _ray


@dataclass(frozen=True)
class Connection:
    """A cluster, and what a study has there."""

    cluster: Cluster
    pool: WorkerPool
    states: StateStore


class Ray(Runner):
    """Trains intervals on a Ray cluster, as many at once as there is room for. The others wait.

    Args:
        make_training: builds one run, called once per worker. A sequence has one function per task of a family.
        cpus: CPUs that one fork needs; a fraction shares one.
        gpus: GPUs that one fork needs; a fraction shares one, None needs none.
        address: of the cluster, as `ray.init` takes it. None uses RAY_ADDRESS, a cluster that runs on this machine, or
            a new one that ends with the study. If ray is initialised already, that cluster is used.
        storage: where to keep checkpoints: a folder on a mount that all nodes share, or a URL that fsspec knows. None
            keeps them in the study's folder.
        patience: an interval that takes this many times the median time of others, per step, gets a second worker.
        slow_after: seconds before which no interval gets a second worker.
        warn_after: seconds without any worker until a warning says what a fork needs.
    """

    reads_storage = True

    def __init__(
        self,
        make_training: Factories,
        *,
        cpus: float = 1.0,
        gpus: float | None = None,
        address: str | None = None,
        storage: str | None = None,
        patience: float = 4.0,
        slow_after: float = 5.0,
        warn_after: float = 20.0,
    ) -> None:
        super().__init__()
        if not patience > 1:
            raise InputError(f"patience must be more than 1, got {patience}: 4 waits for four times the usual time")
        for name, seconds in (("slow_after", slow_after), ("warn_after", warn_after)):
            if not seconds >= 0:
                raise InputError(f"{name} must be a number of seconds, 0 or more, got {seconds}")
        self._make_training, self._resources, self._address = make_training, ForkResources(cpus, gpus), address
        self._url = check_url(storage) if storage is not None else None
        self._step_times, self._warn_after = StepTimes(patience, slow_after), warn_after
        self._storage: Storage | None = None
        self._storage_folder: Path | None = None
        self._connection: Connection | None = None
        self._dispatcher: Dispatcher | None = None

    @property
    def idle_workers(self) -> int:
        """How many workers there are between rounds."""
        return len(self._connection.pool.idle) if self._connection is not None else 0

    def evaluates(self) -> bool:
        """Whether the training says that its values come from an evaluation: a worker is asked."""
        pool = self._connect().pool
        return bool(ray.get(pool.first_worker(self._warn_after).actor.evaluates.remote()))

    def fingerprint(self, task: int, *, may_build: bool = True) -> Fingerprint | None:
        """What the training of a task consists of: a worker is asked. If it cannot say, running it will tell why."""
        if self._connection is None and not may_build:
            return None
        worker = self._connect().pool.first_worker(self._warn_after)
        with suppress(RayError):
            return ray.get(worker.actor.fingerprint.remote(task))
        return None

    def prepare(self, task: int = 0) -> None:
        """Save the state of the untrained run. A worker makes it, since this machine may lack what a training needs."""
        start = self.checkpoints.path(task, 0)
        if self._connect().states.is_saved(start):
            return
        for report in self._dispatch([Assignment(None, None, start, task)]):
            if report.failure is not None:
                raise TrainingError(f"the untrained run could not be saved: {describe_failure(report.failure)}")

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train all intervals, side by side."""
        if intervals:
            yield from self._dispatch(
                [
                    Assignment(i, self.checkpoints.origin(i), self.checkpoints.target(i), i.task, self.keep_rule(i))
                    for i in intervals
                ]
            )

    def _dispatch(self, assignments: list[Assignment]) -> Generator[Report]:
        connection = self._connect()
        self._dispatcher = Dispatcher(
            assignments,
            connection.pool,
            connection.states,
            step_times=self._step_times,
            warn_after=self._warn_after,
            on_step=self.on_step,
            stopwatch=self.stopwatch,
        )
        try:
            yield from self._dispatcher.reports()
        finally:
            self._cancel()

    def _cancel(self) -> None:
        """Stop workers that are still training, if a study stops in the middle of a round."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
        self._dispatcher = None

    def keep_only(self, needed: set[Path]) -> None:
        """Delete all other checkpoints, here and in the storage."""
        super().keep_only(needed)
        if self._connection is not None:
            self._connection.states.keep_only(needed)
        storage = self._study_storage()
        if storage is not None:
            storage.keep_only({path.name for path in needed if not path.exists()}, self.is_named)

    def discard(self, paths: set[Path]) -> None:
        """Delete these checkpoints, here and in the storage."""
        super().discard(paths)
        if self._connection is not None:
            for path in paths:
                self._connection.states.forget(path)
        storage = self._study_storage()
        if storage is not None:
            storage.discard({path.name for path in paths})

    def fetch(self, path: Path) -> None:
        """Copy a checkpoint from the storage into the study's folder, without loading it."""
        storage = self._study_storage()
        if storage is not None and not path.exists():
            storage.fetch(path.name, path)

    def close(self) -> None:
        """Stop all workers, and the cluster if it was started here."""
        self._cancel()  # a traceback may keep the last round alive
        if self._connection is not None:
            self._connection.pool.close()
            self._connection.states.close()
            self._connection.cluster.close()
            self._connection = None

    def _study_storage(self) -> Storage | None:
        """The storage of the study, if it has one."""
        folder = self.checkpoints.folder
        if self._storage_folder != folder:
            self._storage_folder, self._storage = folder, study_storage(self._url, folder.parent)
        return self._storage

    def _connect(self) -> Connection:
        """The connection, made when it is first needed: a study that is finished needs none."""
        storage = self._study_storage()
        if self._connection is None:
            cluster = Cluster(self._address, self._resources)
            try:
                pool = WorkerPool(cluster, self._make_training, storage, self.seed)
                self._connection = Connection(cluster, pool, StateStore(cluster, storage))
            except BaseException:
                cluster.close()
                raise
        return self._connection
