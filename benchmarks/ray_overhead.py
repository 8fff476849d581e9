"""What the cluster costs: bars for 0.9 of plain processes' speed, and a pause between rounds at most linear in forks.

Speed: four forks of the digits network under `runner="ray"`, and the same four in plain processes, on the same cores
with one thread each. Both begin from a checkpoint, train the same steps and write a checkpoint; workers and processes
are there before the clock starts, and have trained a little. Medians over repeats in turn.

Pause: from the last report of a round to the first dispatch of the next, which is the moment a worker begins to train
(one clock: it is the same machine), with what the loop does in between, deleting checkpoints. Intervals there are of
one step. Medians over rounds, after two that are not counted.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from benchmarks._report import machine, print_results, result, table
from paceline import Schedule
from paceline.problems import Quadratic, QuadraticTraining, digits_training
from paceline.runner import Ray
from paceline.study import Checkpoints, Interval, Report
from paceline.training import load_checkpoint, save_checkpoint

FORKS, COUNTS = 4, (2, 4, 8, 16)


def digits() -> object:
    return digits_training(every=20)


class Clocked(QuadraticTraining):
    """Yields the time at which its interval began."""

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        began = time.time()
        for step, _ in super().advance(schedule, stop):
            yield step, began


def clocked() -> Clocked:
    return Clocked(Quadratic(dims=20), every=1)


def intervals(forks: int, start: int, stop: int) -> list[Interval]:
    """An interval of each fork."""
    schedule = Schedule.constant(1e-3, stop)
    return [Interval(fork, None, start, stop, schedule, start + 1) for fork in range(forks)]


class OnRay:
    """Forks on a cluster on this machine."""

    def __init__(self, make: Callable[[], object], forks: int, folder: Path) -> None:
        self.runner, self.forks = Ray(make, cpus=2 / forks, gpus=0, address="local"), forks
        self.runner.attach(Checkpoints(folder), 0)
        self.runner.prepare()
        self.run(0, 1)  # until all workers are there
        while self.runner.idle_workers < forks:
            time.sleep(0.1)
            self.run(0, 1)

    def run(self, start: int, stop: int) -> list[Report]:
        reports = list(self.runner.run(intervals(self.forks, start, stop)))
        assert not [report.failure for report in reports if report.failure]
        return reports


def plain(folder: Path, fork: int, pipe: Connection) -> None:
    """One plain process: trains from one checkpoint to the next for every message."""
    torch.set_num_threads(1)
    training = digits_training(every=20)
    while (message := pipe.recv()) is not None:
        origin, stop, schedule = message
        training.load_state_dict(load_checkpoint(origin))
        for _ in training.advance(schedule, stop):
            pass
        save_checkpoint(training.state_dict(), folder / f"{fork}-{stop}.pt")
        pipe.send(stop)


class Plain:
    """Forks in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = list[Connection](), list[multiprocessing.process.BaseProcess]()
        save_checkpoint(digits_training(every=20).state_dict(), folder / "0-0.pt")
        for fork in range(FORKS):
            own_end, process_end = context.Pipe()
            self.pipes.append(own_end)
            self.processes.append(context.Process(target=plain, args=(folder, fork, process_end)))
            self.processes[-1].start()
        self.run(0, 1)

    def run(self, start: int, stop: int) -> None:
        checkpoints = Checkpoints(self.folder)
        for pipe, interval in zip(self.pipes, intervals(FORKS, start, stop), strict=True):
            pipe.send((checkpoints.origin(interval), stop, interval.schedule))
        assert [pipe.recv() for pipe in self.pipes] == [stop] * FORKS

    def close(self) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send(None)
            process.join()


def speeds(folder: Path, steps: int, repeats: int) -> dict[str, list[float]]:
    """Steps per second of all forks together."""
    (folder / "ray").mkdir()
    (folder / "plain").mkdir()
    ways = {"ray": OnRay(digits, FORKS, folder / "ray"), "plain": Plain(folder / "plain")}
    speeds_of: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):
        for name in sorted(ways, reverse=bool(repeat % 2)):
            began = time.perf_counter()
            ways[name].run(1, 1 + steps)
            if repeat:  # the first one warms up
                speeds_of[name].append(FORKS * steps / (time.perf_counter() - began))
    ways["plain"].close()
    ways["ray"].runner.close()
    return speeds_of


def pause(folder: Path, forks: int, rounds: int) -> float:
    """Median seconds from the last report of a round to the first dispatch of the next."""
    folder.mkdir()
    on_ray, pauses = OnRay(clocked, forks, folder), list[float]()
    for step in range(1, rounds + 3):
        ended = time.time()
        on_ray.runner.keep_only({folder / f"{fork}-{step}.pt" for fork in range(forks)} | {folder / "0-0.pt"})
        reports = on_ray.run(step, step + 1)
        pauses.append(min(report.values["raw"][0] for report in reports) - ended)
    on_ray.runner.close()
    return statistics.median(pauses[2:])


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        speeds_of = speeds(Path(temporary), options.steps, options.repeats)
        rows = [[name, *(f"{value:.0f}" for value in values)] for name, values in speeds_of.items()]
        print(f"steps per second of {FORKS} forks together, {options.steps} steps each")
        print(table(["", *(str(i + 1) for i in range(options.repeats))], rows))
        median = {name: statistics.median(values) for name, values in speeds_of.items()}
        pauses = {forks: pause(Path(temporary) / str(forks), forks, options.rounds) for forks in COUNTS}
    print()
    print(table(["forks", "pause, ms", "per fork"], [[n, 1e3 * p, 1e3 * p / n] for n, p in pauses.items()]))
    for name, value in median.items():
        result(f"ray_overhead_steps_per_s_{name}", value)
    result("ray_overhead_speed_ratio", median["ray"] / median["plain"])
    for forks, seconds in pauses.items():
        result(f"ray_overhead_pause_ms_{forks}_forks", 1e3 * seconds)
    slope = np.polyfit(np.log(list(pauses)), np.log(list(pauses.values())), 1)[0]
    result("ray_overhead_pause_growth_exponent", float(slope))
    print_results()


if __name__ == "__main__":
    main()
