"""known.jsonl: runs of other studies that a study starts with, copied into it, so that it depends on no other folder.

Each line is a trace. A clone comes after the run it was cloned from, and names that run's line as `parent`.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import numpy as np

from paceline.errors import JournalError
from paceline.files import write_atomically
from paceline.json_fields import Name, Range, record
from paceline.study.regular_files import read_regular_file, writing
from paceline.traces import Objective, Schedule, Trace

FILE = "known.jsonl"


def with_parents(traces: Sequence[Trace]) -> list[Trace]:
    """The traces and all their ancestors, each after the one it was cloned from."""
    ordered: dict[int, Trace] = {}
    for trace in traces:
        line = [trace]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        for ancestor in reversed(line):
            ordered.setdefault(id(ancestor), ancestor)
    return list(ordered.values())


def to_lines(traces: Sequence[Trace]) -> bytes:
    """The content of the file."""
    whole = with_parents(traces)
    numbers = {id(trace): i for i, trace in enumerate(whole)}
    return b"".join(json.dumps(_plain(trace, numbers), allow_nan=False).encode() + b"\n" for trace in whole)


def digest_of_runs(traces: Sequence[Trace]) -> str:
    """A short hash that identifies the runs."""
    return hashlib.sha256(to_lines(traces)).hexdigest()[:16]


def save_known_runs(folder: Path, traces: Sequence[Trace]) -> None:
    """Copy the runs into a study folder."""
    with writing(folder / FILE):
        write_atomically(folder / FILE, lambda file: file.write(to_lines(traces)))


def load_known_runs(folder: Path, expected: str | None = None) -> list[Trace]:
    """The runs that were copied into a study folder, an empty list if there are none.

    Args:
        folder: the study folder.
        expected: the digest that they must have.
    """
    path, traces = folder / FILE, list[Trace]()
    content = read_regular_file(path)
    if content is None and expected is None:
        return []
    if content is None:
        raise JournalError(f"{path} cannot be read (there is no such file): it was removed or damaged, restore it")
    try:
        for line in content.split(b"\n")[:-1]:
            traces.append(_trace(json.loads(line), traces))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise JournalError(f"{path} cannot be read ({error}): it was removed or damaged, restore it") from error
    if expected is not None and digest_of_runs(traces) != expected:
        raise JournalError(f"{path} has changed since the study started: it was edited, restore it")
    return traces


def _plain(trace: Trace, numbers: dict[int, int]) -> dict[str, Any]:
    objective = trace.objective
    return {
        "task": trace.task,
        "name": trace.name,
        "parent": None if trace.parent is None else numbers[id(trace.parent)],
        "fork_step": trace.fork_step,
        "schedule": trace.schedule.to_json(),
        "objective": [objective.mode, objective.transform, objective.weights],
        "failed": trace.failed,
        "steps": trace.steps.tolist(),
        "values": [value if np.isfinite(value) else None for value in trace.values.tolist()],
    }


class _Line(TypedDict):
    """A line of the file."""

    task: Name
    name: Name
    parent: int | None
    fork_step: int
    schedule: Schedule
    objective: Annotated[list[Name], Range(3, 3)]
    failed: bool
    steps: list[int]
    values: list[float | None]


_read_line = record(_Line)


def _trace(data: Any, before: list[Trace]) -> Trace:
    line = cast("dict[str, Any]", _read_line(data))
    parent: int | None = line["parent"]
    return Trace(
        np.array(line["steps"]),
        np.array([np.nan if value is None else value for value in line["values"]], dtype=float),
        Schedule.from_json(line["schedule"]),
        None if parent is None else before[parent],
        line["fork_step"],
        task=line["task"],
        name=line["name"],
        objective=Objective(*line["objective"]),
        failed=line["failed"],
    )
