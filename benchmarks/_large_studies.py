"""Large studies opened and continued, and long lists of studies: each in a process of its own, for benchmarks.views."""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks._journals import population, search_strategy
from paceline.study import Study, write_settings
from paceline.study.journal_line import write_line
from paceline.tuner import Tuner

CLOCKS = ("wall", "cpu")  # seconds that passed, and seconds of this process: on a busy machine, far fewer


def measured(what: str, folder: Path, events: int) -> dict[str, float]:
    """The figures of `open_study` or `continue_study`, from a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks._large_studies", what, str(folder), str(events)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def open_study(folder: Path, events: int) -> dict[str, float]:
    """Every event read and checked, and what they add up to."""
    begin = _clocks()
    study = Study.open(folder)
    forks = len(study.state.forks)
    return {**_since(begin), "events": len(study.events), "forks": forks, "mb": _peak_megabytes()}


def continue_study(folder: Path, events: int) -> dict[str, float]:
    """The study replayed, the intervals that are open reported on, and the decision that follows."""
    begin = _clocks()
    tuner = Tuner(lr=(1e-5, 1e-1), steps=1_000, strategy=search_strategy(events), study=folder)
    for interval in tuner.ask() or []:
        tuner.tell(interval, [interval.stop], [1.0])
    assert tuner.ask() is None
    figures = {**_since(begin), "forks": len(tuner.history.forks), "mb": _peak_megabytes()}
    tuner.close()
    return figures


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begin: tuple[float, float]) -> dict[str, float]:
    return {name: now - before for name, now, before in zip(CLOCKS, _clocks(), begin, strict=True)}


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_list(root: Path, count: int) -> None:
    """A folder with so many small studies, in twenty groups."""
    lines = b""
    for number, event in zip(range(330), population(330), strict=False):
        lines += write_line(number, event)
    settings: dict[str, Any] = json.loads(lines.partition(b"\n")[0])["settings"]
    for number in range(count):
        folder = root / f"group{number % 20}" / f"study{number}"
        folder.mkdir(parents=True)
        write_settings(folder, settings, 0)
        (folder / "journal.jsonl").write_bytes(lines)


def processor_seconds(process: int) -> float:
    """What a process has used of the processor so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def idle_share(address: str, process: int, path: str, seconds: float = 20.0) -> float:
    """The share of a core that a server takes while a page is open and nothing happens; an empty path is no page."""
    if not path:
        return _share(process, seconds)
    with httpx.stream("GET", address + path, timeout=60) as answer:
        next(answer.iter_lines())
        time.sleep(3)
        return _share(process, seconds)


def _share(process: int, seconds: float) -> float:
    before = processor_seconds(process)
    time.sleep(seconds)
    return (processor_seconds(process) - before) / seconds


if __name__ == "__main__":
    action, place, number = sys.argv[1:]
    print(json.dumps({"open": open_study, "continue": continue_study}[action](Path(place), int(number))))
