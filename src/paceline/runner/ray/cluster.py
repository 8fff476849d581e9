"""The connection to a Ray cluster, and what its nodes have room for."""

import logging
import os
import warnings
from dataclasses import dataclass
from typing import Any

import ray as _ray

from paceline.errors import InputError

ray: Any = _ray  # its annotations are partial
# set to 0, it chooses the newer treatment of GPU variables; otherwise ray warns at every start
GPU_VARIABLES_SETTING = "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"


@dataclass(frozen=True, slots=True)
class ForkResources:
    """What one fork needs; `gpus` is None if the user gave no number."""

    cpus: float
    gpus: float | None

    def __post_init__(self) -> None:
        """Refuse at once what ray would refuse later."""
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus or 0.0)):
            if not 0 <= value < float("inf") or (value > 1 and value != int(value)):
                raise InputError(
                    f"{name} must be a fraction up to 1 or a whole number, got {value}: 0.5 shares one of them"
                )

    @property
    def options(self) -> dict[str, float]:
        """Options for a ray actor."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus or 0}

    def fit(self, resources: dict[str, float]) -> bool:
        """Whether a node with these resources could run a fork."""
        return resources.get("CPU", 0) >= self.cpus and resources.get("GPU", 0) >= (self.gpus or 0)

    def __str__(self) -> str:
        return f"cpus={self.cpus:g}, gpus={self.gpus or 0:g}"


class Cluster:
    """A connection to a cluster. A cluster that was started for it on this machine stops when it is closed.

    Args:
        address: as `ray.init` takes it; None uses RAY_ADDRESS, a cluster that `ray start` left on this machine, or a
            new one.
        resources: what a fork needs.
    """

    def __init__(self, address: str | None, resources: ForkResources) -> None:
        self.resources = resources
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            _connect(address)
        try:
            self._check()
            self.node = str(ray.get_runtime_context().get_node_id())
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        """Refuse a cluster that cannot run the study, and warn of GPUs that it would not use."""
        if ray.util.client.ray.is_connected():
            raise InputError(
                "the study's folder must be on a node of the cluster, got a client connection (ray://): run the study "
                "on the head node, or submit it with `ray job submit`"
            )
        node: Any = ray._private.worker._global_node
        started_here = self._connected_here and getattr(node, "head", False)
        if started_here and not self.suitable_nodes():  # and no node will be added
            raise InputError(
                f"a fork needs {self.resources}, and this machine has {self.describe()}: "
                "lower cpus= or gpus=, or pass the address= of a larger cluster"
            )
        if self.resources.gpus is None and ray.cluster_resources().get("GPU", 0):
            warnings.warn(
                "the cluster has GPUs, but forks get none by default: pass gpus=1, or a fraction to share one; pass "
                "gpus=0 if they need none",
                stacklevel=2,
            )

    def suitable_nodes(self, *, other_than: str = "") -> list[str]:
        """Ids of the living nodes that could run a fork."""
        nodes = [node for node in ray.nodes() if node["Alive"] and node["NodeID"] != other_than]
        return [node["NodeID"] for node in nodes if self.resources.fit(node["Resources"])]

    def is_alive(self, node: str) -> bool:
        """Whether a node is still there."""
        return any(other["Alive"] for other in ray.nodes() if other["NodeID"] == node)

    def describe(self) -> str:
        """The cluster's CPUs and GPUs, and how many of them are free, for messages."""
        total, free = ray.cluster_resources(), ray.available_resources()
        return ", ".join(f"{total.get(kind, 0):g} {kind}s ({free.get(kind, 0):g} free)" for kind in ("CPU", "GPU"))

    def close(self) -> None:
        """Disconnect, unless the user's program connected."""
        if self._connected_here:
            ray.shutdown()


def _connect(address: str | None) -> None:
    """Connect to a cluster, or start one."""
    os.environ.setdefault(GPU_VARIABLES_SETTING, "0")
    try:
        ray.init(address=address, include_dashboard=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        place = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise InputError(
            f"no Ray cluster at {place} ({first}): start one with `ray start --head`, or leave address out to have one "
            "started here"
        ) from error
