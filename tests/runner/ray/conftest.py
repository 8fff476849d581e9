"""A real cluster of two nodes on this machine."""

import gc
import warnings
from collections.abc import Iterator

import pytest
import ray
from ray.cluster_utils import Cluster

SYSTEM_SETTINGS = {
    # a dead node refuses connections, so it is noticed after a second; a slow one has time to answer
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 2,
    "health_check_timeout_ms": 60_000,
    "worker_register_timeout_seconds": 600,
}


class Machines:
    """Two nodes with room for one fork each. The second one can be killed, and is replaced for the next test."""

    def __init__(self) -> None:
        self._size = {"num_cpus": 1, "object_store_memory": 80_000_000}
        head = {**self._size, "include_dashboard": False, "_system_config": SYSTEM_SETTINGS}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.second = self.cluster.add_node(**self._size)

    def kill_second(self) -> None:
        """The second node dies without notice."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def replace_dead(self) -> "Machines":
        """Add a second node if it was killed."""
        if self.second is None:
            self.second = self.cluster.add_node(**self._size)
        return self


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machines = Machines()
        try:
            ray.init(address=machines.cluster.address, log_to_driver=False, logging_level="ERROR")
            yield machines
        finally:
            ray.shutdown()
            machines.cluster.shutdown()
            gc.collect()  # ray's open files, here where their warnings are ignored


@pytest.fixture
def machines(cluster: Machines) -> Machines:
    return cluster.replace_dead()
