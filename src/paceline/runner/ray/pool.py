"""The workers of a study.

A worker is requested for each fork that waits, and gets an interval only once it has started. So a request that the
cluster has no room for delays nothing. Workers stay from round to round and keep the state of their last interval: a
fork that continues on its worker moves no data.
"""

import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray as _ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from paceline.errors import InputError, TrainingError
from paceline.runner.base import Factories
from paceline.runner.ray.cluster import Cluster
from paceline.runner.ray.errors import describe_error, error_to_raise
from paceline.runner.ray.storage import Storage
from paceline.runner.ray.worker import Worker
from paceline.training import get_random_state

ray: Any = _ray
MAX_FAILED_STARTS = 3  # in a row, until the study stops


@dataclass(eq=False)
class WorkerHandle:
    """A worker, as the process that runs the study sees it.

    Args:
        actor: the ray actor.
        node: id of its node, once it has started.
        loaded: the checkpoint whose state it holds.
    """

    actor: Any
    node: str = ""
    loaded: Path | None = None


class WorkerPool:
    """Workers that are starting, and workers that are idle.

    Args:
        cluster: where they run.
        make_training: builds the training of each.
        storage: where they keep checkpoints; None is the study's folder.
        seed: of the study.
    """

    def __init__(self, cluster: Cluster, make_training: Factories, storage: Storage | None, seed: int = 0) -> None:
        self.cluster = cluster
        self.starting: dict[Any, WorkerHandle] = {}
        self.idle: list[WorkerHandle] = []
        self._worker_class = ray.remote(Worker)
        self._failed_starts = 0
        try:
            factory = ray.cloudpickle.dumps(make_training)
        except Exception as error:
            raise InputError(
                f"the training factory cannot be sent to workers ({type(error).__name__}: {error}): build what cannot "
                "be pickled inside the function"
            ) from error
        self._start_arguments = (
            factory,
            [path or os.getcwd() for path in sys.path],
            max(1, int(cluster.resources.cpus)),
            storage,
            get_random_state(),
            seed,
        )

    def request(self, *, other_than: str = "") -> None:
        """Request one more worker, if possible on another node than this one."""
        nodes = self.cluster.suitable_nodes(other_than=other_than) if other_than else []
        strategy: Any = NodeAffinitySchedulingStrategy(nodes[0], soft=True) if nodes else "SPREAD"
        actor = self._worker_class.options(scheduling_strategy=strategy, **self.cluster.resources.options).remote()
        self.starting[actor.start.remote(*self._start_arguments)] = WorkerHandle(actor)

    def add_started(self, reference: Any) -> None:
        """Add a worker that has started, or count one that died. An error of the training's factory is raised."""
        worker = self.starting.pop(reference)
        try:
            worker.node = ray.get(reference)
        except RayTaskError as error:
            raised = error_to_raise(error)
            raise raised from raised.__cause__
        except RayError as error:
            self.stop(worker)
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise TrainingError(
                    f"{MAX_FAILED_STARTS} workers in a row died before they were ready ({describe_error(error)}): "
                    "check that all nodes have this version of paceline, and memory for the training"
                ) from None
            return
        self._failed_starts = 0
        self.idle.append(worker)

    def first_worker(self, warn_after: float) -> WorkerHandle:
        """An idle worker; if there is none, one is requested and waited for."""
        warned, since = False, time.monotonic()
        while not self.idle:
            if not self.starting:
                self.request()
            ready, _ = ray.wait(list(self.starting), num_returns=1, timeout=1.0)
            for reference in ready:
                self.add_started(reference)
            if not warned and not self.idle and time.monotonic() - since > warn_after:
                warned = True
                self.warn_without_workers(warn_after)
        return self.idle[0]

    def warn_without_workers(self, seconds: float) -> None:
        """Say what a fork needs."""
        warnings.warn(
            f"no worker has come for {seconds:.0f} s: a fork needs {self.cluster.resources}, the cluster has "
            f"{self.cluster.describe()}; the study waits for room, lower cpus= or gpus= if there will be none",
            stacklevel=3,
        )

    def take(self, origin: Path | None, *, other_than: str = "") -> WorkerHandle | None:
        """An idle worker, preferably one that holds this state; on another node than this one if there is one."""
        must_differ = other_than and self.cluster.suitable_nodes(other_than=other_than)
        candidates = [worker for worker in self.idle if not must_differ or worker.node != other_than]
        if not candidates:
            return None
        holders = [worker for worker in candidates if worker.loaded is not None and worker.loaded == origin]
        worker = (holders or candidates)[0]
        self.idle.remove(worker)
        return worker

    def stop(self, worker: WorkerHandle) -> None:
        """Stop a worker, whatever it is doing."""
        ray.kill(worker.actor)

    def shrink(self, count: int, origins: Sequence[Path]) -> None:
        """Keep at most `count` workers. Requests go first, then workers that hold none of these states."""
        for reference in list(self.starting)[max(0, count - len(self.idle)) :]:
            self.stop(self.starting.pop(reference))
        self.idle.sort(key=lambda worker: worker.loaded not in origins)
        for worker in self.idle[count:]:
            self.stop(worker)
        del self.idle[count:]

    def close(self) -> None:
        """Stop all workers."""
        self.shrink(0, ())
