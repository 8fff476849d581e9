"""Where the states of forks are: in the object store for those who clone, and safe on disk or in the storage.

The driver holds references only. The keeper, an actor on the driver's node, writes what comes through the object store
into the study's folder, and puts back what was lost with a node, or what a continued study begins from. With a storage
the workers write and read there themselves.
"""

from pathlib import Path
from typing import Any

import ray as _ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from paceline.runner.ray.cluster import Cluster
from paceline.runner.ray.storage import Storage
from paceline.runner.ray.worker import Keeper

ray: Any = _ray


class States:
    """The states that something may begin from.

    Args:
        cluster: whose object store they travel through.
        storage: where they are kept, if not with the study.
    """

    def __init__(self, cluster: Cluster, storage: Storage | None) -> None:
        self.storage = storage
        self._refs: dict[Path, Any] = {}
        here = NodeAffinitySchedulingStrategy(cluster.node, soft=False)
        options = {"num_cpus": 0, "max_restarts": 3, "max_task_retries": 3, "scheduling_strategy": here}
        self._keeper = ray.remote(Keeper).options(**options).remote() if storage is None else None

    def has(self, path: Path) -> bool:
        """Whether a state is safe."""
        return self.storage.exists(path.name) if self.storage is not None else path.exists()

    def get(self, path: Path) -> Any:
        """A reference to a packed state; None where the worker reads the storage."""
        if path not in self._refs and self._keeper is not None:
            self._refs[path] = self._keeper.read.remote(path)
        return self._refs.get(path)

    def keep(self, path: Path, ref: Any) -> Any:
        """Make a state safe: what to wait for, or None where it is already."""
        self._refs[path] = ref
        return self._keeper.write.remote(ref, path) if self._keeper is not None else None

    def lose(self, path: Path) -> None:
        """Forget a reference whose object is gone: the next one asks where the state is safe."""
        self._refs.pop(path, None)

    def keep_only(self, paths: set[Path]) -> None:
        """Drop the references to all others."""
        self._refs = {path: ref for path, ref in self._refs.items() if path in paths}

    def close(self) -> None:
        """Let go of them, and of the keeper."""
        self._refs.clear()
        if self._keeper is not None:
            ray.kill(self._keeper)
