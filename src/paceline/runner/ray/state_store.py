"""The states of forks: in Ray's object store for the workers, and in a safe place on disk.

The process that runs the study only has references to them. With a storage, workers write and read checkpoints there
themselves. Without one, an actor on this process's node writes what comes through the object store into the study's
folder. It also reads checkpoints back: those that were lost with a node, and those that a continued study begins from.
"""

from pathlib import Path
from typing import Any

import ray as _ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from paceline.runner.ray.cluster import Cluster
from paceline.runner.ray.storage import Storage
from paceline.runner.ray.worker import CheckpointActor

ray: Any = _ray
RESTARTS = 3  # of the actor, and of each of its calls


class StateStore:
    """The states that intervals may begin from.

    Args:
        cluster: the cluster whose object store they travel through.
        storage: where checkpoints are kept; None is the study's folder.
    """

    def __init__(self, cluster: Cluster, storage: Storage | None) -> None:
        self.storage = storage
        self._references: dict[Path, Any] = {}
        same_node = NodeAffinitySchedulingStrategy(cluster.node, soft=False)
        options = {"num_cpus": 0, "max_restarts": RESTARTS, "max_task_retries": RESTARTS}
        actor: Any = ray.remote(CheckpointActor).options(**options, scheduling_strategy=same_node)
        self._actor = actor.remote() if storage is None else None

    def is_saved(self, path: Path) -> bool:
        """Whether a state is safe on disk."""
        return self.storage.exists(path.name) if self.storage is not None else path.exists()

    def reference(self, path: Path) -> Any:
        """A reference to a packed state; None if the worker is to read it from the storage."""
        if path not in self._references and self._actor is not None:
            self._references[path] = self._actor.read.remote(path)
        return self._references.get(path)

    def save(self, path: Path, reference: Any) -> Any:
        """Begin to save a state. Returns a reference to wait for; None if the worker has saved it already."""
        self._references[path] = reference
        return self._actor.write.remote(reference, path) if self._actor is not None else None

    def forget(self, path: Path) -> None:
        """Drop the reference to an object that is lost or not needed. The next `reference` reads from disk."""
        self._references.pop(path, None)

    def keep_only(self, paths: set[Path]) -> None:
        """Drop the references to all other states."""
        self._references = {path: reference for path, reference in self._references.items() if path in paths}

    def close(self) -> None:
        """Drop all references, and stop the actor."""
        self._references.clear()
        if self._actor is not None:
            ray.kill(self._actor)
