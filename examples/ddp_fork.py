"""A fork of two processes, with DistributedDataParallel over gloo on the CPU.

Paceline sees a fork as one object. How many processes and GPUs are behind it is up to the training. This one starts its
processes once and sends them rates and states. Rank 0 reports values and returns the state, which is the same on all
ranks. On a cluster, reserve what all processes need together: `partial(Ray, cpus=2)`, or `gpus=2` with nccl.

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
    """The part of the training that one process does: its share of every batch."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(0)  # the same data and the same weights on all ranks
        self.rank, self.steps_done, self.seed = rank, 0, 0
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
            draw = np.random.default_rng([self.seed, self.steps_done, self.rank])  # needs no state of its own
            rows = torch.tensor(draw.integers(len(self.labels), size=BATCH))
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.parallel(self.points[rows]), self.labels[rows]).backward()
            self.optimizer.step()
            self.steps_done += 1
            with torch.no_grad():
                for mean, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
                    mean.lerp_(weight, 1 / (1 + 0.15 * self.steps_done))
            if self.steps_done % EVERY == 0 or i == len(rates) - 1:
                yield self.steps_done, {"raw": self.value(self.model), "averaged": self.value(self.average)}

    @torch.no_grad()
    def value(self, model: nn.Module) -> float:
        return float(nn.functional.cross_entropy(model(self.valid_points), self.valid_labels))

    def state(self) -> dict[str, Any]:
        parts = {"model": self.model, "average": self.average, "optimizer": self.optimizer}
        return {
            "steps_done": self.steps_done,
            "seed": self.seed,
            **{name: part.state_dict() for name, part in parts.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        self.steps_done, self.seed = state["steps_done"], state["seed"]
        for name in ("model", "average", "optimizer"):
            getattr(self, name).load_state_dict(state[name])


def serve(rank: int, rendezvous: str, pipe: Connection) -> None:
    """The main loop of one process: runs commands until the pipe is closed."""
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=RANKS)
    process = Rank(rank)
    try:
        while True:
            command, argument = pipe.recv()
            if command == "advance":
                for observed in process.advance(argument):
                    if rank == 0:
                        pipe.send(observed)
                pipe.send(None)
            elif command == "state":
                pipe.send(pack(process.state()))
            elif command == "load":
                process.load(torch.load(io.BytesIO(argument), weights_only=True))
            elif command == "seed":
                process.seed = argument
    except (EOFError, OSError):  # the training has closed its end
        distributed.destroy_process_group()


def pack(state: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


class DistributedTraining:
    """The training that Paceline sees. It sends commands to its processes."""

    def __init__(self) -> None:
        self.steps_done = 0
        context = multiprocessing.get_context("spawn")
        rendezvous = str(Path(tempfile.mkdtemp(prefix="ranks-")) / "rendezvous")
        self.pipes: list[Connection] = []
        for rank in range(RANKS):
            own_end, rank_end = context.Pipe()
            context.Process(target=serve, args=(rank, rendezvous, rank_end), daemon=True).start()
            rank_end.close()  # so that reading fails when the process dies
            self.pipes.append(own_end)
        weakref.finalize(self, lambda pipes: [pipe.close() for pipe in pipes], self.pipes)

    def advance(self, schedule: paceline.Schedule, stop: int) -> Iterator[tuple[int, dict[str, float]]]:
        self.send("advance", [float(rate) for rate in schedule(np.arange(self.steps_done, stop))])
        for pipe in self.pipes:  # rank 0 sends values; each rank sends None at the end
            while (observed := pipe.recv()) is not None:
                yield observed
        self.steps_done = stop

    def state_dict(self) -> dict[str, Any]:
        self.pipes[0].send(("state", None))
        return torch.load(io.BytesIO(self.pipes[0].recv()), weights_only=True)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps_done = state["steps_done"]
        self.send("load", pack(state))

    def reseed(self, seed: int) -> None:
        self.send("seed", seed)

    def send(self, command: str, argument: Any) -> None:
        for pipe in self.pipes:
            pipe.send((command, argument))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", choices=["local", "ray"], default="local")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    runner: Any = options.runner
    if runner == "ray":
        from paceline.runner import Ray

        runner = partial(Ray, cpus=RANKS)
    from examples import ddp_fork  # not __main__: other processes import this module by its name

    result = paceline.tune(ddp_fork.DistributedTraining, steps=options.steps, lr=(1e-4, 1e-1), runner=runner)
    print(f"fork {result.fork} ended at {result.value}; its rate half-way was {result.schedule(options.steps // 2)}")


if __name__ == "__main__":
    main()
