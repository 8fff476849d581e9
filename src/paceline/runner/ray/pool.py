"""The workers of a study: requested while forks queue, given an interval only once they are there.

A request that the cluster cannot place holds nothing up: it is a worker that has not come. Workers stay from round to
round and remember the state they left, so that a fork that goes on at its worker moves nothing.
"""

import os
import sys
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
from paceline.runner.ray.errors import in_words, own_error
from paceline.runner.ray.storage import Storage
from paceline.runner.ray.worker import Worker
from paceline.training import get_random_state

ray: Any = _ray
STARTS = 3  # workers that die one after the other before any was ready, until the study stops


@dataclass(eq=False)
class Member:
    """A worker as the driver knows it: where it is, and which checkpoint's state it holds."""

    actor: Any
    node: str = ""
    holds: Path | None = None


class Pool:
    """Workers: those on their way, and those with nothing to do.

    Args:
        cluster: where they are placed.
        make_training: builds the training of each.
        storage: where they keep checkpoints, if not with the study.
        seed: of the study.
    """

    def __init__(self, cluster: Cluster, make_training: Factories, storage: Storage | None, seed: int = 0) -> None:
        self.cluster = cluster
        self.starting: dict[Any, Member] = {}
        self.idle: list[Member] = []
        self._worker = ray.remote(Worker)
        self._died = 0
        try:
            factory = ray.cloudpickle.dumps(make_training)
        except Exception as error:
            raise InputError(
                f"the training factory cannot be sent to workers ({type(error).__name__}: {error}): build what cannot "
                "be pickled inside the function"
            ) from error
        self._start = (
            factory,
            [path or os.getcwd() for path in sys.path],
            max(1, int(cluster.needs.cpus)),
            storage,
            get_random_state(),
            seed,
        )

    def request(self, *, other_than: str = "") -> None:
        """Ask for one more worker, on another node than this one where there is one."""
        elsewhere = self.cluster.holders(other_than=other_than) if other_than else []
        place: Any = NodeAffinitySchedulingStrategy(elsewhere[0], soft=True) if elsewhere else "SPREAD"
        actor = self._worker.options(scheduling_strategy=place, **self.cluster.needs.options).remote()
        self.starting[actor.start.remote(*self._start)] = Member(actor)

    def arrived(self, ref: Any) -> None:
        """Take in a worker that has started, or died on the way; what the training's factory raised is raised."""
        member = self.starting.pop(ref)
        try:
            member.node = ray.get(ref)
        except RayTaskError as error:
            raise own_error(error) or error from None
        except RayError as error:
            self.dismiss(member)
            self._died += 1
            if self._died >= STARTS:
                raise TrainingError(
                    f"{STARTS} workers in a row died before they were ready ({in_words(error)}): see that all nodes "
                    "have this version of paceline, and memory for the training"
                ) from None
            return
        self._died = 0
        self.idle.append(member)

    def take(self, origin: Path | None, *, other_than: str = "") -> Member | None:
        """A worker with nothing to do, the one that holds this state if there is one."""
        strict = other_than and self.cluster.holders(other_than=other_than)
        fitting = [member for member in self.idle if not strict or member.node != other_than]
        if not fitting:
            return None
        chosen = next((m for m in fitting if m.holds is not None and m.holds == origin), None) or fitting[0]
        self.idle.remove(chosen)
        return chosen

    def dismiss(self, member: Member) -> None:
        """Let a worker go, with what it is doing."""
        ray.kill(member.actor)

    def shrink(self, count: int, origins: Sequence[Path]) -> None:
        """Let go of what is more than `count`: requests first, then workers that hold nothing of use."""
        for ref in list(self.starting)[max(0, count - len(self.idle)) :]:
            self.dismiss(self.starting.pop(ref))
        self.idle.sort(key=lambda member: member.holds not in origins)
        for member in self.idle[count:]:
            self.dismiss(member)
        del self.idle[count:]

    def close(self) -> None:
        """Let all go."""
        self.shrink(0, ())
