"""Logs of old runs, read into traces: a study, a CSV file, TensorBoard's events.

What is needed of a run is when, at which rate, and how good. Everything else about a log (names, gaps, several runs in
one file, a run that was continued) is sorted out here and in `series`, so that a model sees traces and nothing else.
"""

import csv
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from paceline.errors import InputError
from paceline.integrations.grouped_warnings import GroupedWarnings
from paceline.integrations.series import RATE, STEP, VALUE, Rate, Series, constant_rate, pick, trace_of
from paceline.integrations.tensorboard import FILE_MARK, Scalars, event_files, read_scalars
from paceline.study import Study
from paceline.traces import Trace

TABLES = {".csv", ".tsv", ".txt"}
_RUNS = ("run", "run_id", "run_name", "run id", "run name")


def read_traces(
    path: "str | Path",
    *,
    step: str | None = None,
    lr: "Rate | None" = None,
    value: str | None = None,
    mode: str = "min",
) -> list[Trace]:
    """Read the runs of a study folder, of a table (CSV), or of TensorBoard's event files.

    Args:
        path: the study's folder; the table, with a column `run` where it holds several; an event file, or a folder,
            where each folder below with event files is a run.
        step: the column that counts updates; by default found by its name, as the next two.
        lr: the column or tag of the rate; or, where it was not logged, the rate itself or a `Schedule`.
        value: the column or tag of the loss, or of whatever is to be improved.
        mode: "min" for a loss, "max" otherwise; a study knows.

    Returns:
        One trace per run; forks of a study with their parents.
    """
    with GroupedWarnings() as notes:
        return traces_in(Path(path), notes, step=step, lr=lr, value=value, mode=mode)


def traces_in(
    where: Path, notes: GroupedWarnings, *, step: str | None, lr: "Rate | None", value: str | None, mode: str
) -> list[Trace]:
    """As `read_traces`; what is to be said of the log is added to `notes`, which several logs may share."""
    if (where / "study.json").exists() or (where / "journal.jsonl").exists():
        return _of_study(where)
    if where.is_file() and FILE_MARK in where.name:
        return _of_events(where, lr, value, mode, notes)
    if where.is_file() and where.suffix.lower() in TABLES:
        return _of_table(where, step, lr, value, mode, notes)
    if where.is_dir() and event_files(where):
        return _of_events(where, lr, value, mode, notes)
    is_there = (
        "a folder without any of these" if where.is_dir() else f"a file that ends in {where.suffix or 'nothing'!r}"
    )
    got = is_there if where.exists() else "nothing there"
    raise InputError(
        f"{where}: expected a study folder, a table (.csv, .tsv) or TensorBoard's event files, got {got}: "
        "check the path"
    )


def _of_study(folder: Path) -> list[Trace]:
    """The forks, by their raw weights where these were observed."""
    named: dict[str, Trace] = {}
    for trace in Study.open(folder).traces():
        parent = named[trace.parent.name] if trace.parent is not None else None
        named[trace.name] = replace(trace, name=f"{folder}, fork {trace.name}", parent=parent)
    if not named:
        raise InputError(f"{folder}: expected runs with observations, got none: wait until its first interval is over")
    return list(named.values())


def _of_table(
    path: Path, step: str | None, lr: "Rate | None", value: str | None, mode: str, notes: GroupedWarnings
) -> list[Trace]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = list(csv.reader(lines, delimiter=max(",;\t", key=lines[0].count))) if lines else []
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} does not read as a table ({error}): expected a CSV file, write it again") from error
    if len(rows) < 2:
        raise InputError(f"{path}: expected a line of column names and a line per observation, got {len(rows)} line(s)")
    names = [name.strip() for name in rows[0]]
    rate = constant_rate(lr, names)
    at, of = pick(names, STEP, step, str(path), notes), pick(names, VALUE, value, str(path), notes)
    by = next((name for name in names if name.lower() in _RUNS), None)
    named = lr if isinstance(lr, str) else None
    wanted = [of] if rate is not None else [of, pick(names, RATE, named, str(path), notes)]
    found: dict[str, dict[str, Series]] = {}
    for number, row in enumerate(rows[1:], start=2):
        cells = dict(zip(names, row, strict=False))
        if not cells.get(at, "").strip():
            continue
        run = found.setdefault(cells.get(by, "") if by else "", {name: [] for name in wanted})
        for name in wanted:
            if cells.get(name, "").strip():
                run[name].append((_whole(cells[at], path, at, number), _number(cells[name], path, name, number)))
    runs = {f"{path}, run {run}" if run else str(path): columns for run, columns in found.items()}
    for name, columns in runs.items():
        _check_order(name, columns[of])
    rated = {name: rate if rate is not None else columns[wanted[1]] for name, columns in runs.items()}
    return [trace_of(name, rated[name], columns[of], mode) for name, columns in runs.items()]


def _number(cell: str, path: Path, name: str, row: int) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise InputError(
            f"{path}, line {row}: expected a number in {name!r}, got {cell!r}: correct it, leave the cell empty, or "
            "name another column"
        ) from error


def _whole(cell: str, path: Path, name: str, row: int) -> int:
    number = _number(cell, path, name, row)
    if number != number // 1 or number < 0:
        raise InputError(
            f"{path}, line {row}: expected a whole step from 0 on in {name!r}, got {cell!r}: count updates"
        )
    return int(number)


def _check_order(name: str, values: Series) -> None:
    """Steps may go back to a checkpoint, but not to where the run began."""
    for (before, _), (step, _) in pairwise(values):
        if step < before and step <= values[0][0]:
            raise InputError(
                f"{name}: steps must increase, got {before:,} followed by {step:,}, as in a second run: "
                "sort the rows by step, or number the runs in a column named 'run'"
            )


def _of_events(path: Path, lr: "Rate | None", value: str | None, mode: str, notes: GroupedWarnings) -> list[Trace]:
    """Each folder with event files is a run; one that has no rate or no loss is left out with a warning."""
    folders: dict[Path, list[Path]] = {}
    for file in event_files(path):
        folders.setdefault(file.parent, []).append(file)
    found, refused = list[Trace](), dict[Path, InputError]()
    for folder, files in folders.items():
        try:
            found += _of_folder(path if path.is_file() else folder, files, lr, value, mode, notes)
        except InputError as error:
            refused[folder] = error
    if not found:
        raise next(iter(refused.values()))
    for folder, error in refused.items():
        notes.add(f"left out: {error}", str(folder))
    return found


def _of_folder(
    where: Path, files: Sequence[Path], lr: "Rate | None", value: str | None, mode: str, notes: GroupedWarnings
) -> list[Trace]:
    parts = [read_scalars([file]) for file in files]
    tags = list({tag: None for part in parts for tag in part})
    rate = constant_rate(lr, tags)
    of = pick(tags, VALUE, value, str(where), notes, thing="tag")
    named = lr if isinstance(lr, str) else None
    by = "" if rate is not None else pick(tags, RATE, named, str(where), notes, thing="tag")
    runs = _runs(parts, of)
    several = len(runs) > 1
    return [
        trace_of(
            f"{where}, run {i}" if several else str(where), run.get(by, []) if rate is None else rate, run[of], mode
        )
        for i, run in enumerate(runs, start=1)
    ]


def _runs(parts: Sequence[Scalars], of: str) -> list[Scalars]:
    """Files of one folder: one goes on with the run before it, unless its values begin where those did."""
    runs: list[Scalars] = [{}]
    for part in parts:
        begun = runs[-1].get(of)
        if begun and of in part and part[of][0][0] <= begun[0][0]:
            runs.append({})
        for tag, series in part.items():
            runs[-1].setdefault(tag, []).extend(series)
    return [run for run in runs if of in run]
