"""A study killed at random moments continues as if nothing had happened.

SIGKILL at 25 random moments of a study of a small network that overfits, so that its best weights are kept on the way:
a third each while it trains, while it writes a checkpoint and while it writes its journal. Each study is continued
until it is finished; some are killed several times. Its journal must then equal that of the undisturbed study in all
but seconds, and the weights that it returns bit for bit.

The study runs in a forked process. It keeps its phase in shared memory, which outlives it, and signals on a pipe when
it begins the phase it is to be killed in for the n-th time. The parent kills it a random moment later.
"""

import argparse
import json
import mmap
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import Struct

import torch

from benchmarks._overfitting import PROBLEMS
from benchmarks._report import machine, print_results, result, table
from paceline import Schedule, TorchTraining, tune
from paceline.runner import Local
from paceline.study import Checkpoints, Event, Journal
from paceline.training import load_checkpoint, save_checkpoint

PHASES, ELSE = ("training", "checkpoint", "journal"), "else"  # else: deciding, loading, cleaning up
PHASE_AND_COUNTS = Struct("5i")  # in the memory that a study shares: its phase, and how often each phase has begun
DURATIONS = {"training": 0.001, "checkpoint": 0.003, "journal": 0.0003}  # seconds, about
PROBLEM = PROBLEMS["noisy digits"]
STUDY = {"steps": PROBLEM.steps, "lr": (PROBLEM.middle / 100, PROBLEM.middle * 100), "cost": 2.3, "seed": 0}


@dataclass
class Moment:
    """When to kill: `delay` seconds after a phase has begun for the n-th time."""

    phase: str
    count: int
    delay: float


class PhaseBoard:
    """The phase of a study, in memory that its parent process can read."""

    def __init__(self, memory: mmap.mmap, pipe: int, moment: Moment | None) -> None:
        self.memory, self.pipe, self.moment = memory, pipe, moment
        self.counts = dict.fromkeys((*PHASES, ELSE), 0)

    def begin(self, phase: str) -> None:
        """Record that a phase begins, and signal the phase that the parent waits for."""
        self.counts[phase] += 1
        PHASE_AND_COUNTS.pack_into(self.memory, 0, list(self.counts).index(phase), *self.counts.values())
        if self.moment is not None and (phase, self.counts[phase]) == (self.moment.phase, self.moment.count):
            os.write(self.pipe, b"!")


def run_study(folder: Path, board: PhaseBoard) -> None:
    """Start or continue the study, and record its phases."""

    class Training(TorchTraining):
        def advance(self, schedule: Schedule, stop: int):
            board.begin("training")
            for observation in super().advance(schedule, stop):
                yield observation
                board.begin("training")
            board.begin(ELSE)

    def training() -> TorchTraining:
        training_of_fork = PROBLEM.make(0)
        training_of_fork.__class__ = Training
        return training_of_fork

    def save(state: dict, path: Path) -> None:
        board.begin("checkpoint")
        save_checkpoint(state, path)
        board.begin(ELSE)

    append = Journal.append

    def append_with_phase(journal: Journal, *events: Event) -> None:
        board.begin("journal")
        append(journal, *events)
        board.begin(ELSE)

    Journal.append = append_with_phase
    tune(training, study=folder, runner=partial(Local, save=save), quiet=True, **STUDY)


def run(folder: Path, moment: Moment | None = None) -> tuple[str | None, dict[str, int]]:
    """Run the study in its own process and kill it at a moment.

    Returns:
        Its phase then, None if it had ended; and how often each phase had begun.
    """
    memory = mmap.mmap(-1, PHASE_AND_COUNTS.size)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_study(folder, PhaseBoard(memory, write, moment))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    if os.read(read, 1) and moment is not None:
        time.sleep(moment.delay)
        os.kill(child, signal.SIGKILL)
    os.close(read)
    status = os.waitpid(child, 0)[1]
    phase, *numbers = PHASE_AND_COUNTS.unpack_from(memory, 0)
    counts = dict(zip((*PHASES, ELSE), numbers, strict=True))
    if os.WIFSIGNALED(status):
        return list(counts)[phase], counts
    if os.WEXITSTATUS(status):
        raise RuntimeError(f"the study in {folder} broke: see above")
    return None, counts


def journal(folder: Path) -> list[dict]:
    """The journal without seconds, and without the checksums, which cover them."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seconds", "spent", "crc32")} for line in lines]


def final_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The state dict of the best moment: a finished study keeps no other state."""
    (path,) = Checkpoints.of_study(folder).folder.glob("*.pt")
    return load_checkpoint(path)["model"]


def kill_some(folder: Path, rng: random.Random, done: dict[str, int], counts: dict[str, int], most: int) -> list[str]:
    """Kill a study up to three times, each time in the phase that was hit least; then let it finish.

    Args:
        folder: the study's.
        rng: draws the moments.
        done: how many were killed in each phase.
        counts: how often each phase begins in a whole study.
        most: the most kills.
    """
    hits, times = list[str](), min(rng.randint(1, 3), most)
    for _ in range(times):
        phase = min(PHASES, key=lambda name: done[name])
        hit, _ = run(folder, Moment(phase, rng.randint(1, counts[phase] // times), rng.uniform(0, DURATIONS[phase])))
        if hit is None:
            break  # it ended before the phase came
        lines = len((folder / "journal.jsonl").read_bytes().splitlines())
        done[hit] += 1
        hits.append(f"{hit} (line {lines})")
    run(folder)
    return hits


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(machine())
    rng, rows, done = random.Random(options.seed), list[list[object]](), dict.fromkeys((*PHASES, ELSE), 0)
    same = equal = 0
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "whole"
        _, counts = run(whole)
        expected, weights = journal(whole), final_weights(whole)
        while sum(done.values()) < options.kills:
            folder = Path(tempfile.mkdtemp(dir=temporary))
            hits = kill_some(folder, rng, done, counts, options.kills - sum(done.values()))
            decisions, weights_after = journal(folder) == expected, final_weights(folder)
            bits = all(bool((weights_after[name] == weights[name]).all()) for name in weights)
            same, equal = same + decisions * len(hits), equal + bits * len(hits)
            rows.append([", ".join(hits), "same" if decisions else "OTHER", "equal" if bits else "OTHER"])
    print(f"{options.kills} kills of {len(rows)} studies with {len(expected)} lines each")
    print(table(["killed during", "decisions", "final weights"], rows))
    result("kill_same_decisions", same)
    result("kill_equal_weights", equal)
    for phase, count in done.items():
        result(f"kill_during_{phase}", count)
    print_results()


if __name__ == "__main__":
    main()
