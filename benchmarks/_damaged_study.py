"""A small study to damage: how it runs, what it came to, and a process of its own to be killed in."""

import json
import mmap
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import torch

from paceline import PacelineError, tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.study import Event
from paceline.training import load_checkpoint

STUDY: dict[str, Any] = {"steps": 200, "lr": (0.01, 1.9), "cost": 1.5, "keep": "best", "seed": 1, "quiet": True}
COUNT = Struct("i")  # events that are on disk, as the study's process says in memory that outlives it
NOTICED, HARMLESS, CHANGED = "noticed", "harmless", "CHANGED"


class Interrupt(BaseException):
    """Ends a study where it is."""


class Outcome(NamedTuple):
    """What a finished study came to: its events without seconds, and its weights."""

    events: list[dict[str, Any]]
    weights: dict[str, torch.Tensor]

    def is_same(self, other: "Outcome") -> bool:
        """Whether all decisions are the same, and all weights to the last bit."""
        bits = [torch.equal(self.weights[name], weight) for name, weight in other.weights.items()]
        return self.events == other.events and all(bits)


def run(folder: Path, on_event: "Callable[[Event], None] | None" = None) -> Outcome:
    """Begin or continue the study to its end."""
    training = partial(QuadraticTraining, Quadratic(dims=500), every=4)
    result = tune(training, study=folder, on_event=on_event, **STUDY)
    assert isinstance(result.state, Path)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    events = [{k: v for k, v in line.items() if k not in ("v", "crc32", "seconds")} for line in lines]
    return Outcome(events, load_checkpoint(result.state)["model"])


def stopped(folder: Path, events: int) -> None:
    """Begin the study, and end it after so many events."""
    left = [events]

    def stop(event: Event) -> None:
        left[0] -= 1
        if not left[0]:
            raise Interrupt

    with suppress(Interrupt):
        run(folder, stop)


def verdict(folder: Path, expected: Outcome) -> str:
    """Continue a study: an error that says what is wrong, the same as if nothing had happened, or something else."""
    try:
        return HARMLESS if run(folder).is_same(expected) else CHANGED
    except PacelineError:
        return NOTICED


def copy_of(template: Path, folder: Path) -> Path:
    """A fresh copy of a study."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    return folder


@contextmanager
def own_process(folder: Path, *, syncs: bool = True) -> Iterator[tuple[int, Callable[[], int]]]:
    """The study in a process of its own, and a function that says how many of its events are on disk."""
    memory = mmap.mmap(-1, COUNT.size)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if not syncs:
                os.fsync = lambda descriptor: None
            run(folder, lambda event: COUNT.pack_into(memory, 0, COUNT.unpack_from(memory)[0] + 1))
            status = 0
        finally:
            os._exit(status)
    try:
        yield child, lambda: COUNT.unpack_from(memory)[0]
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def wait_for(child: int, count: Callable[[], int], events: int, delay: float) -> None:
    """Wait until so many events are on disk or the process has ended, and a moment more."""
    while count() < events and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(delay)
