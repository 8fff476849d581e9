"""What a fork needs, and which nodes have it."""

from types import SimpleNamespace
from typing import Any

import pytest

from paceline.errors import InputError
from paceline.runner.ray import cluster as module
from paceline.runner.ray.cluster import Cluster, ForkResources

NODES = [
    {"NodeID": "a", "Alive": True, "Resources": {"CPU": 4.0}},
    {"NodeID": "b", "Alive": True, "Resources": {"CPU": 1.0, "GPU": 1.0}},
    {"NodeID": "c", "Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
]


class ConnectedRay:
    """A connection to a cluster of three nodes, one of which is dead."""

    def __init__(self, *, by_client: bool = False, is_head: bool = False) -> None:
        self.shut_down, self._started = False, is_head
        self.util = SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: by_client)))
        self._private = SimpleNamespace(worker=SimpleNamespace(_global_node=SimpleNamespace(head=is_head)))

    def is_initialized(self) -> bool:
        return not self._started

    def init(self, **settings: Any) -> None:
        if settings["address"] == "nowhere":
            raise ConnectionError("nobody answers\nmore")

    def nodes(self) -> list[dict[str, Any]]:
        return NODES

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 5.0, "GPU": 1.0}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "a")

    def shutdown(self) -> None:
        self.shut_down = True


def connected(monkeypatch: pytest.MonkeyPatch, cpus: float, gpus: float | None, **state: Any) -> Cluster:
    monkeypatch.setattr(module, "ray", ConnectedRay(**state))
    return Cluster(None, ForkResources(cpus, gpus))


@pytest.mark.parametrize(
    ("cpus", "gpus", "fits"),
    [(4, None, ["a"]), (0.5, 0, ["a", "b"]), (1, 0.5, ["b"]), (1, 2, []), (8, 0, [])],
)
def test_nodes_fit_if_they_are_alive_and_large_enough(
    cpus: float, gpus: float | None, fits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if gpus is None:
        with pytest.warns(UserWarning, match="the cluster has GPUs, but forks get none by default: pass gpus=1"):
            cluster = connected(monkeypatch, cpus, gpus)
    else:
        cluster = connected(monkeypatch, cpus, gpus)
    assert cluster.suitable_nodes() == fits
    assert cluster.suitable_nodes(other_than="a") == [node for node in fits if node != "a"]
    assert [cluster.is_alive(node) for node in "abcd"] == [True, True, False, False]
    assert cluster.describe() == "5 CPUs (2 free), 1 GPUs (0 free)"


def test_a_cluster_of_the_users_program_stays_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = connected(monkeypatch, 1, 0)
    assert cluster.node == "a"
    cluster.close()
    assert not module.ray.shut_down


def test_a_cluster_that_can_never_run_a_fork_is_refused_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "a fork needs cpus=8, gpus=0, and this machine has 5 CPUs .*: lower cpus= or gpus=, or pass the address="
    with pytest.raises(InputError, match=message):
        connected(monkeypatch, 8, 0, is_head=True)
    assert module.ray.shut_down


def test_a_client_connection_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"got a client connection \(ray://\): run the study on the head node"):
        connected(monkeypatch, 1, 0, by_client=True)


def test_a_cluster_that_does_not_answer_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ray", ConnectedRay(is_head=True))
    with pytest.raises(InputError, match=r"no Ray cluster at nowhere \(nobody answers\): start one with `ray start"):
        Cluster("nowhere", ForkResources(1, 0))


def test_resources_are_fractions_or_whole_numbers() -> None:
    assert str(ForkResources(0.5, None)) == "cpus=0.5, gpus=0"
    assert ForkResources(2, 0.25).options == {"num_cpus": 2, "num_gpus": 0.25}
    for cpus, gpus, message in (
        (-1, 0, "cpus must be .*, got -1"),
        (1, 1.5, "gpus must be .*, got 1.5"),
        (float("inf"), 0, "got inf"),
    ):
        with pytest.raises(InputError, match=message):
            ForkResources(cpus, gpus)
