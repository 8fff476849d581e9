"""Run studies of the CIFAR-10 experiment in several processes on one GPU. Stopped studies continue the next time."""

import json
import multiprocessing
import shutil
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from benchmarks._report import machine
from experiments._cifar_results import CifarResults
from experiments._cifar_studies import EPOCHS, METHODS, Unit
from experiments._cifar_training import BATCH, Data, final_measures, load_data, make_training
from paceline import tune
from paceline.study import Checkpoints, Event, Report, Study
from paceline.training import load_checkpoint


def run(unit: Unit, runs: Path, results: CifarResults, data: Data | None = None, epochs: int | None = None) -> None:
    """Run a study or the rest of it, then keep its journal and the final measures of its forks.

    Args:
        unit: the study.
        runs: where studies are while they run.
        results: where finished ones go.
        data: other images than CIFAR-10.
        epochs: another length than `EPOCHS`.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, method = data or load_data(device), METHODS[unit.method]
    steps = (epochs or EPOCHS[unit.depth]) * (len(data.train.y) // BATCH)
    folder = runs / unit.name
    folder.mkdir(parents=True, exist_ok=True)
    every = 50 if method.trace == "batches" else max(1, steps // 60)
    began = time.perf_counter()
    result = tune(
        partial(make_training, data, unit.depth, unit.seed, method.trace, every),
        steps=steps,
        lr=method.lr,
        strategy=method.make(),
        study=folder,
        seed=unit.seed,
        runner="streams" if device == "cuda" else "local",
        on_event=partial(_measure_end, folder, steps, data, unit.depth),
        keep="last",  # the experiment compares the ends of runs
        quiet=True,
    )
    row = {
        **unit._asdict(),
        "trace": method.trace,
        "lr": method.lr,
        "steps": steps,
        "cost": Study.open(folder).state.done_steps / steps,
        "winner": result.fork,
        "weights": result.value_of,
        "ends": {end["fork"]: end for end in map(json.loads, _ends(folder).read_text().splitlines())},
        "seconds": {"wall": time.perf_counter() - began, **result.seconds},
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "machine": machine(),
    }
    target = results.archive.folder(unit.name)
    target.mkdir(parents=True, exist_ok=True)
    for name in ("study.json", "journal.jsonl"):
        shutil.copy(folder / name, target)
    results.add(row)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _ends(folder: Path) -> Path:
    """Final measures of the forks of a study."""
    return folder / "ends.jsonl"


def _measure_end(folder: Path, steps: int, data: Data, depth: int, event: Event) -> None:
    """Measure the weights of a fork that has reached the end of the run."""
    if isinstance(event, Report) and event.failure is None and event.stop == steps:
        state = load_checkpoint(Checkpoints.of_study(folder).path(event.fork, steps))
        with _ends(folder).open("a") as file:
            file.write(json.dumps({"fork": event.fork, **final_measures(state, data, depth)}) + "\n")


def next_unit(todo: Path) -> Unit | None:
    """Take the first study off a list: lines of depth, method and seed, which may be edited."""
    with FileLock(todo.with_suffix(".lock")):
        first, *rest = [*filter(None, todo.read_text().splitlines()), ""]
        todo.write_text("\n".join(rest))
    if not first:
        return None
    depth, method, seed = first.split("|")
    return Unit(int(depth), method, int(seed))


def _work(todo: Path, runs: Path, folder: Path) -> None:
    """Run studies until there are none."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave the GPU tidily: others may share it
    torch.set_num_threads(1)
    results = CifarResults(folder)
    while (unit := next_unit(todo)) is not None:
        began = time.perf_counter()
        try:
            run(unit, runs, results)
            print(f"{unit.name}: {time.perf_counter() - began:.0f} s", flush=True)
        except Exception:
            print(f"{unit.name} failed:\n{traceback.format_exc()}", flush=True)


def complete(units: list[Unit], runs: Path, results: CifarResults, *, jobs: int, limit: float | None = None) -> None:
    """Run studies in `jobs` processes, for at most `limit` seconds if a limit is given, then pack their journals.

    The studies that wait are in `runs/todo.txt`, which may be edited: the first line is run next.
    """
    runs.mkdir(parents=True, exist_ok=True)
    results.folder.mkdir(parents=True, exist_ok=True)
    todo = runs / "todo.txt"
    todo.write_text("".join(f"{unit.depth}|{unit.method}|{unit.seed}\n" for unit in units))
    context = multiprocessing.get_context("spawn")
    arguments: tuple[Any, ...] = (todo, runs, results.folder)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(jobs)]
    deadline = None if limit is None else time.monotonic() + limit
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    late = [worker for worker in workers if worker.is_alive()]
    for worker in late:
        worker.terminate()
    for worker in late:
        worker.join(20)
        worker.kill()
    results.archive.pack()
    if late:
        print(f"stopped after {limit:g} s: run it again to continue")
