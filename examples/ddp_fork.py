"""A fork of several processes: a training that keeps two of them, with DistributedDataParallel over gloo on the CPU.

To paceline a fork is one object; how many processes and GPUs are behind it is the training's own affair. This one
starts its processes once, sends them rates and states, and has rank 0 report values and hand out the state, which is
the same on all ranks. On a cluster, reserve what all need together: `partial(Ray, cpus=2)`, or `gpus=2` with nccl.

    python -m examples.ddp_fork --runner local
    python -m examples.ddp_fork --runner ray
"""

import argparse
import copy
import io
import multiprocessing
import os
import tempfile
import weakref
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import paceline

RANKS, BATCH, EVERY = 2, 32, 4


class Rank:
    """What one of the processes does: its share of every batch."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(0)  # the same data and the same weights on all ranks
        self.rank, self.done, self.seed = rank, 0, 0
        points = torch.randn(3000, 20)
        labels = (points[:, :10].norm(dim=1) > points[:, 10:].norm(dim=1)).long()
        self.points, self.valid_points = points[:2000], points[2000:]
        self.labels, self.valid_labels = labels[:2000], labels[2000:]
        self.model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
        self.average = copy.deepcopy(self.model)
        self.parallel = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def advance(self, rates: list[float]) -> Iterator[tuple[int, dict[str, float]]]:
        for i, rate in enumerate(rates):
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            draw = np.random.default_rng([self.seed, self.done, self.rank])  # needs no state of its own
            rows = torch.tensor(draw.integers(len(self.labels), size=BATCH))
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.parallel(self.points[rows]), self.labels[rows]).backward()
            self.optimizer.step()
            self.done += 1
            with torch.no_grad():
                for mean, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
                    mean.lerp_(weight, 1 / (1 + 0.15 * self.done))
            if self.done % EVERY == 0 or i == len(rates) - 1:
                yield self.done, {"raw": self.value(self.model), "averaged": self.value(self.average)}

    @torch.no_grad()
    def value(self, model: nn.Module) -> float:
        return float(nn.functional.cross_entropy(model(self.valid_points), self.valid_labels))

    def state(self) -> dict[str, Any]:
        parts = {"model": self.model, "average": self.average, "optimizer": self.optimizer}
        return {"done": self.done, "seed": self.seed, **{name: part.state_dict() for name, part in parts.items()}}

    def load(self, state: dict[str, Any]) -> None:
        self.done, self.seed = state["done"], state["seed"]
        for name in ("model", "average", "optimizer"):
            getattr(self, name).load_state_dict(state[name])


def serve(rank: int, meeting: str, pipe: Connection) -> None:
    """One process: does what it is told until nobody is there to tell it."""
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    me = Rank(rank)
    try:
        while True:
            command, argument = pipe.recv()
            if command == "advance":
                for observed in me.advance(argument):
                    if rank == 0:
                        pipe.send(observed)
                pipe.send(None)
            elif command == "state":
                pipe.send(packed(me.state()))
            elif command == "load":
                me.load(torch.load(io.BytesIO(argument), weights_only=True))
            elif command == "seed":
                me.seed = argument
    except (EOFError, OSError):  # the fork is gone
        distributed.destroy_process_group()


def packed(state: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


class DistributedTraining:
    """The training that paceline sees: it talks to its processes."""

    def __init__(self) -> None:
        self.done = 0
        context = multiprocessing.get_context("spawn")
        meeting = str(Path(tempfile.mkdtemp(prefix="ranks-")) / "meeting")
        self.pipes: list[Connection] = []
        for rank in range(RANKS):
            mine, theirs = context.Pipe()
            context.Process(target=serve, args=(rank, meeting, theirs), daemon=True).start()
            theirs.close()  # so that a process that dies is noticed
            self.pipes.append(mine)
        weakref.finalize(self, lambda pipes: [pipe.close() for pipe in pipes], self.pipes)

    def advance(self, schedule: paceline.Schedule, stop: int) -> Iterator[tuple[int, dict[str, float]]]:
        self.tell("advance", [float(rate) for rate in schedule(np.arange(self.done, stop))])
        for pipe in self.pipes:  # rank 0 has values, the others say when they are through
            while (observed := pipe.recv()) is not None:
                yield observed
        self.done = stop

    def state_dict(self) -> dict[str, Any]:
        self.pipes[0].send(("state", None))
        return torch.load(io.BytesIO(self.pipes[0].recv()), weights_only=True)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]
        self.tell("load", packed(state))

    def reseed(self, seed: int) -> None:
        self.tell("seed", seed)

    def tell(self, command: str, argument: Any) -> None:
        for pipe in self.pipes:
            pipe.send((command, argument))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", choices=["local", "ray"], default="local")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    runner: Any = options.runner
    if runner == "ray":
        from paceline.runner.ray import Ray

        runner = partial(Ray, cpus=RANKS)
    from examples import ddp_fork  # by its name, so that new processes can import it: not as __main__

    result = paceline.tune(ddp_fork.DistributedTraining, steps=options.steps, lr=(1e-4, 1e-1), runner=runner)
    print(f"fork {result.fork} ended at {result.value}, at a rate of {result.schedule(options.steps // 2)} half-way")


if __name__ == "__main__":
    main()
