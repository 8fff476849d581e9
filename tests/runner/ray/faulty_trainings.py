"""Trainings with a fault, for workers. Each leaves marks in a folder, so that a fault happens once, or on one node."""

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import ray

from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner.ray.worker import MESSAGE_PERIOD, Worker
from paceline.study import Interval, Report
from paceline.traces import Schedule
from paceline.training import TorchTraining
from tests.training.example_trainings import small_network

FOREVER = 600.0  # seconds: a worker that hangs is killed long before


def node() -> str:
    """The id of the node of a worker; empty outside of workers."""
    return str(ray.get_runtime_context().get_node_id()) if ray.is_initialized() else ""


def network() -> TorchTraining:
    """The undisturbed training of `HangingNetwork`."""
    training = small_network(every=3)
    training.reseed(0)
    return training


class HangingNetwork:
    """Writes down every interval. On the doomed node it hangs inside one as soon as `folder`/hang is there."""

    evaluates = True

    def __init__(self, folder: Path, doomed: str) -> None:
        self.training, self.folder, self.doomed = network(), folder, doomed

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        with (self.folder / f"{node()}.log").open("a") as log:
            log.write("begin\n")
            log.flush()
            while not (self.folder / f"{self.doomed}.log").exists():  # both nodes must have begun
                time.sleep(0.01)
            for i, observed in enumerate(self.training.advance(schedule, stop)):
                hangs = i > 0 and node() == self.doomed and (self.folder / "hang").exists()
                if hangs:
                    log.write("hang\n")
                    log.flush()
                    time.sleep(2 * MESSAGE_PERIOD)  # so that the next observation is sent at once
                yield observed
                if hangs:
                    time.sleep(FOREVER)
            log.write("end\n")

    def state_dict(self) -> dict:
        return self.training.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self.training.load_state_dict(state)

    def reseed(self, seed: int) -> None:
        self.training.reseed(seed)


def quadratic(noise: float = 1.0) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), seed=3, every=2)


class Dying(QuadraticTraining):
    """Ends its process in the middle of an interval: `times` times in all, at rates above `above`."""

    def __init__(self, folder: Path, times: int, above: float = 0.0) -> None:
        super().__init__(Quadratic(dims=20), seed=3, every=2)
        self.folder, self.times, self.above = folder, times, above

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        for observed in super().advance(schedule, stop):
            yield observed
            marks = self.folder / "deaths"
            deaths = len(marks.read_text()) if marks.exists() else 0
            if self.steps_done > 2 and deaths < self.times and schedule.multipliers[0] > self.above:
                marks.write_text("x" * (deaths + 1))
                os._exit(1)


class Mistaken(QuadraticTraining):
    """Has a mistake in its code, and counts the intervals that found it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Quadratic(dims=20), seed=3, every=2)
        self.folder = folder

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        with (self.folder / "tries").open("a") as tries:
            tries.write("x")
        yield 0, {"image": 1.0}["label"]


class Troubled(Dying):
    """Dies twice early on and hangs once later. Writes down how many processes train at the same time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, times=2)

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        with (self.folder / f"running-{os.getpid()}").open("w") as own:
            fcntl.flock(own, fcntl.LOCK_EX)  # released when the process ends, however it ends
            with (self.folder / "counts").open("a") as counts:
                counts.write(f"{count_locked(self.folder)}\n")
            if self.steps_done > 10 and not (self.folder / "stalled").exists():
                (self.folder / "stalled").touch()
                time.sleep(FOREVER)
                (self.folder / "woke").touch()
            yield from super().advance(schedule, stop)


def count_locked(folder: Path) -> int:
    """How many of the files that running trainings lock are locked."""
    count = 0
    for path in folder.glob("running-*"):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                count += 1
    return count


class Vanishing(Worker):
    """A worker that dies once between its report and its state: when the study has seen the interval's last step."""

    def run(self, interval: Interval | None, target: Path, packed, task: int = 0, rule=None) -> Iterator:
        folder = target.parent.parent
        for message in super().run(interval, target, packed, task, rule):
            yield message
            if isinstance(message, Report) and target.name.endswith("-10.pt") and not (folder / "vanished").exists():
                (folder / "vanished").touch()
                while not (folder / f"seen-{message.fork}-{message.stop}").exists():
                    time.sleep(0.01)
                time.sleep(0.2)  # the last step may come before the report
                os._exit(1)
