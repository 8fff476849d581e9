"""Trainings with a fault, for workers: each leaves marks in a folder, so that it happens once, or on one node."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import ray

from paceline.problems import Quadratic, QuadraticTraining, digits_training
from paceline.runner import Report, Task
from paceline.runner.ray.worker import BETWEEN, Worker
from paceline.traces import Schedule
from paceline.training import TorchTraining

HANGS = 60.0  # seconds: longer than any test takes


def node() -> str:
    """The node of a worker; nothing in the driver."""
    return str(ray.get_runtime_context().get_node_id()) if ray.is_initialized() else ""


def digits() -> TorchTraining:
    """The undisturbed problem of `HangingDigits`."""
    return digits_training(every=3)


class HangingDigits:
    """Digits that write down every interval; on the doomed node they hang inside one once `folder`/hang is there."""

    def __init__(self, folder: Path, doomed: str) -> None:
        self.training, self.folder, self.doomed = digits(), folder, doomed

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        with (self.folder / f"{node()}.log").open("a") as log:
            log.write("begin\n")
            log.flush()
            while not (self.folder / f"{self.doomed}.log").exists():  # until both nodes are at it
                time.sleep(0.01)
            for i, observed in enumerate(self.training.advance(schedule, stop)):
                hangs = i > 0 and node() == self.doomed and (self.folder / "hang").exists()
                if hangs:
                    log.write("hang\n")
                    log.flush()
                    time.sleep(2 * BETWEEN)  # so that the driver hears of this observation
                yield observed
                if hangs:
                    time.sleep(HANGS)
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
            died = len(marks.read_text()) if marks.exists() else 0
            if self.steps_done > 2 and died < self.times and schedule.multipliers[0] > self.above:
                marks.write_text("x" * (died + 1))
                (self.folder / f"at-{os.getpid()}").unlink(missing_ok=True)
                os._exit(1)


class Troubled(Dying):
    """Dies twice early on, hangs once later; notes how many train at the same time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, times=2)

    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        mark = self.folder / f"at-{os.getpid()}"
        mark.touch()
        with (self.folder / "counts").open("a") as file:
            file.write(f"{len(list(self.folder.glob('at-*')))}\n")
        if self.steps_done > 10 and not (self.folder / "stalled").exists():
            (self.folder / "stalled").touch()
            time.sleep(HANGS)
        yield from super().advance(schedule, stop)
        mark.unlink()


class Vanishing(Worker):
    """A worker that dies once between its report and its state."""

    def run(self, task: Task | None, target: Path, packed, number: int = 0) -> Iterator:
        for said in super().run(task, target, packed, number):
            yield said
            mark = target.parent.parent / "vanished"
            if isinstance(said, Report) and target.name.endswith("-10.pt") and not mark.exists():
                mark.touch()
                time.sleep(0.2)  # until the driver has heard
                os._exit(1)
