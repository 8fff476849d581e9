"""How long a step of a fork takes in the CIFAR-10 experiment, with forks of several processes at once on one GPU.

`python -m experiments._cifar_speed` measures ways to compile the programs, on made-up images. Where several processes
share a GPU, let them do so at the same time, with `nvidia-cuda-mps-control -d`.
"""

import argparse
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from experiments._cifar_kernels import NVCC, FusedNetwork, library
from experiments._cifar_training import Data, Images, training
from paceline import Schedule
from paceline.training import CudaWorkStream, RecordedTraining

FLAGS = ("-DWARPS_16=8", "-DWARPS_32=8", "-DWARPS_64=8", "-DTOGETHER_32=3")
WAYS = {" ".join(flags) or "as it is": (*NVCC, *flags) for flags in ((), *((flag,) for flag in FLAGS), FLAGS)}
COUNT, SEEN = 45_000, 5_000


def images(count: int) -> Images:
    """Noise with a trace of its class."""
    y = torch.randint(10, (count,), device="cuda")
    return Images(torch.randn(count, 3, 32, 32, device="cuda") + 0.3 * y[:, None, None, None], y)


def measure(asked: argparse.Namespace, compiler: tuple[str, ...], barrier: Any, found: Any) -> None:
    """Milliseconds per step and fork of one process, once all are ready."""
    FusedNetwork.compiler = compiler
    given = Data(images(COUNT), images(SEEN), images(SEEN))
    slots = list[RecordedTraining]()
    for _ in range(asked.forks):
        made = training(given, asked.depth, 0, "validation error", 1_000)
        if slots:
            made.batches.source.tensors = slots[0].batches.tensors
        slots.append(RecordedTraining(made, CudaWorkStream(given.train.x.device)))
        slots[-1].begin(Schedule.constant(1e-3, steps=1_000_000))

    def go_on(steps: int) -> None:
        for _ in range(steps):
            for slot in slots:
                slot.step()
        for slot in slots:
            slot.stream.synchronize()

    go_on(20)
    barrier.wait()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < asked.seconds:
        go_on(50)
        steps += 50
    found.put(1e3 * (time.perf_counter() - began) / steps / asked.forks)


def main() -> None:
    """All ways, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=56)
    parser.add_argument("--forks", type=int, default=6, help="of each process")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    with ThreadPoolExecutor() as pool:
        list(pool.map(library, WAYS.values()))
    context = multiprocessing.get_context("spawn")
    for name, compiler in WAYS.items():
        barrier, found = context.Barrier(asked.processes), context.Queue()
        workers = [
            context.Process(target=measure, args=(asked, compiler, barrier, found)) for _ in range(asked.processes)
        ]
        for worker in workers:
            worker.start()
        times = [found.get(timeout=120) for _ in workers]
        for worker in workers:
            worker.join()
        print(f"{name}: {1 / sum(1 / t for t in times):.4f} ms per step and fork", flush=True)


if __name__ == "__main__":
    main()
