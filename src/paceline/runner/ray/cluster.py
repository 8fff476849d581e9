"""The cluster: found or started, and what it could hold."""

import logging
import os
import warnings
from dataclasses import dataclass
from typing import Any

import ray as _ray

from paceline.errors import InputError

ray: Any = _ray  # its annotations are partial
NEWER = "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"  # to be 0, older versions say in a warning; newer ones say nothing


@dataclass(frozen=True, slots=True)
class Needs:
    """What one fork needs; `gpus` is None where nobody said."""

    cpus: float
    gpus: float | None

    def __post_init__(self) -> None:
        """Refuse what ray would refuse later."""
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus or 0.0)):
            if not 0 <= value < float("inf") or (value > 1 and value != int(value)):
                raise InputError(
                    f"{name} must be a fraction up to 1 or a whole number, got {value}: 0.5 shares one of them"
                )

    @property
    def options(self) -> dict[str, float]:
        """As ray wants them."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus or 0}

    def fit(self, resources: dict[str, float]) -> bool:
        """Whether a node with these resources could hold a fork."""
        return resources.get("CPU", 0) >= self.cpus and resources.get("GPU", 0) >= (self.gpus or 0)

    def __str__(self) -> str:
        return f"cpus={self.cpus:g}, gpus={self.gpus or 0:g}"


class Cluster:
    """A connection to a cluster; the one that is there, or one on this machine, which goes when it is left.

    Args:
        address: as `ray.init` takes it; None is RAY_ADDRESS, what `ray start` left on this machine, or a new one.
        needs: what a fork needs.
    """

    def __init__(self, address: str | None, needs: Needs) -> None:
        self.needs = needs
        self._joined = not ray.is_initialized()
        if self._joined:
            _join(address)
        try:
            self._check()
            self.node = str(ray.get_runtime_context().get_node_id())
        except BaseException:
            self.leave()
            raise

    def _check(self) -> None:
        """Refuse or remark what the user should know before anything runs."""
        if ray.util.client.ray.is_connected():
            raise InputError(
                "the study's folder must be on a node of the cluster, got a client connection (ray://): run the study "
                "on the head node, or hand it in with `ray job submit`"
            )
        node: Any = ray._private.worker._global_node
        if self._joined and getattr(node, "head", False) and not self.holders():  # started here: nothing will be added
            raise InputError(
                f"a fork needs {self.needs}, and this machine has {self.in_words()}: "
                "lower cpus= or gpus=, or pass the address= of a larger cluster"
            )
        if self.needs.gpus is None and ray.cluster_resources().get("GPU", 0):
            warnings.warn(
                "the cluster has GPUs, and forks were promised none: pass gpus=1, or a fraction to share one; gpus=0 "
                "says that they need none",
                stacklevel=2,
            )

    def holders(self, *, other_than: str = "") -> list[str]:
        """The living nodes that could hold a fork."""
        nodes = [node for node in ray.nodes() if node["Alive"] and node["NodeID"] != other_than]
        return [node["NodeID"] for node in nodes if self.needs.fit(node["Resources"])]

    def is_alive(self, node: str) -> bool:
        """Whether a node is still there."""
        return any(known["Alive"] for known in ray.nodes() if known["NodeID"] == node)

    def in_words(self) -> str:
        """What there is, and what of it is free."""
        total, free = ray.cluster_resources(), ray.available_resources()
        return ", ".join(f"{total.get(kind, 0):g} {kind}s ({free.get(kind, 0):g} free)" for kind in ("CPU", "GPU"))

    def leave(self) -> None:
        """Disconnect, where we connected; a cluster started here stops."""
        if self._joined:
            ray.shutdown()


def _join(address: str | None) -> None:
    """Connect to a cluster, or start one."""
    os.environ.setdefault(NEWER, "0")
    try:
        ray.init(address=address, include_dashboard=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise InputError(
            f"no Ray cluster at {where} ({first}): start one with `ray start --head`, or leave address out for one here"
        ) from error
