"""Read logs of old runs as traces: a study, a CSV file, or TensorBoard's event files.

A trace needs steps, rates and values. Everything else about a log is handled here: names of columns, gaps, several runs
in one file, a run that was continued.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from paceline.errors import InputError
from paceline.integrations.column_names import RATE, STEP, VALUE, choose_column
from paceline.integrations.grouped_warnings import GroupedWarnings
from paceline.integrations.tensorboard import FILE_MARK, Scalars, event_files, read_scalars
from paceline.integrations.trace_builder import Rate, Series, build_trace, constant_rate
from paceline.study import Study
from paceline.traces import Schedule, Trace

TABLE_ENDINGS = {".csv", ".tsv", ".txt"}
_RUN_COLUMNS = ("run", "run_id", "run_name", "run id", "run name")


@dataclass(frozen=True, slots=True)
class LogColumns:
    """How to read a log.

    Args:
        step: the column that counts updates; None finds it by its name, as with the next two.
        rate: the column or tag of the rate; or the rate itself, or a `Schedule`, if it was not logged.
        value: the column or tag of the loss, or of what is to be improved.
        mode: "min" for a loss, "max" otherwise.
    """

    step: str | None = None
    rate: "Rate | None" = None
    value: str | None = None
    mode: str = "min"

    @property
    def rate_name(self) -> str | None:
        """The column of the rate, if the user named one."""
        return self.rate if isinstance(self.rate, str) else None


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
        path: a study's folder; a table, with a column `run` if it holds several; an event file; or a folder, in which
            each folder with event files is a run.
        step: the column that counts updates; by default found by its name, as with the next two.
        lr: the column or tag of the rate; or the rate itself, or a `Schedule`, if it was not logged.
        value: the column or tag of the loss, or of what is to be improved.
        mode: "min" for a loss, "max" otherwise. A study has its own mode.

    Returns:
        One trace per run; forks of a study with their parents.
    """
    with GroupedWarnings() as grouped:
        return read_log(Path(path), grouped, LogColumns(step, lr, value, mode))


def read_log(path: Path, grouped: GroupedWarnings, columns: LogColumns) -> list[Trace]:
    """The runs of one log, as `read_traces`. Several logs may share the warnings."""
    if (path / "study.json").exists() or (path / "journal.jsonl").exists():
        return _read_study(path)
    if path.is_file() and FILE_MARK in path.name:
        return _read_events(path, columns, grouped)
    if path.is_file() and path.suffix.lower() in TABLE_ENDINGS:
        return _read_table(path, columns, grouped)
    if path.is_dir() and event_files(path):
        return _read_events(path, columns, grouped)
    if path.is_dir():
        got = "a folder without any of these"
    else:
        got = f"a file that ends in {path.suffix or 'nothing'!r}" if path.exists() else "nothing there"
    raise InputError(
        f"{path}: expected a study folder, a table (.csv, .tsv) or TensorBoard's event files, got {got}: check the path"
    )


def _read_study(folder: Path) -> list[Trace]:
    """The forks, by their raw weights if these were observed."""
    by_name: dict[str, Trace] = {}
    for trace in Study.open(folder).traces():
        parent = by_name[trace.parent.name] if trace.parent is not None else None
        by_name[trace.name] = replace(trace, name=f"{folder}, fork {trace.name}", parent=parent)
    if not by_name:
        raise InputError(f"{folder}: expected runs with observations, got none: wait until its first interval is over")
    return list(by_name.values())


def _read_table(path: Path, columns: LogColumns, grouped: GroupedWarnings) -> list[Trace]:
    names, rows = _rows(path)
    log, rate = str(path), constant_rate(columns.rate, names)
    step_column = choose_column(names, STEP, columns.step, log, grouped)
    value_column = choose_column(names, VALUE, columns.value, log, grouped)
    rate_column = None if rate is not None else choose_column(names, RATE, columns.rate_name, log, grouped)
    run_column = next((name for name in names if name.lower() in _RUN_COLUMNS), None)
    read = [value_column] if rate_column is None else [value_column, rate_column]
    runs: dict[str, dict[str, Series]] = {}
    for number, row in enumerate(rows, start=2):
        cells = dict(zip(names, row, strict=False))
        if not cells.get(step_column, "").strip():
            continue
        run = cells.get(run_column, "") if run_column else ""
        series = runs.setdefault(f"{path}, run {run}" if run else log, {name: [] for name in read})
        for name in read:
            if cells.get(name, "").strip():
                step = _parse_step(cells[step_column], path, step_column, number)
                series[name].append((step, _parse_number(cells[name], path, name, number)))
    for name, series in runs.items():
        _check_order(name, series[value_column])
    return [
        build_trace(name, _rates(series, rate, rate_column), series[value_column], columns.mode)
        for name, series in runs.items()
    ]


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Column names, and the rows below them."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = list(csv.reader(lines, delimiter=max(",;\t", key=lines[0].count))) if lines else []
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} does not read as a table ({error}): expected a CSV file, write it again") from error
    if len(rows) < 2:
        raise InputError(f"{path}: expected a line of column names and a line per observation, got {len(rows)} line(s)")
    return [name.strip() for name in rows[0]], rows[1:]


def _rates(
    series: dict[str, Series], rate: "float | Schedule | None", column: str | None
) -> "Series | float | Schedule":
    """The rate that the user passed, or the rates that were logged."""
    return rate if rate is not None else series.get(column or "", [])


def _parse_number(cell: str, path: Path, name: str, row: int) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise InputError(
            f"{path}, line {row}: expected a number in {name!r}, got {cell!r}: correct it, leave the cell empty, or "
            "name another column"
        ) from error


def _parse_step(cell: str, path: Path, name: str, row: int) -> int:
    number = _parse_number(cell, path, name, row)
    if number != number // 1 or number < 0:
        raise InputError(
            f"{path}, line {row}: expected a whole step from 0 on in {name!r}, got {cell!r}: count updates"
        )
    return int(number)


def _check_order(name: str, values: Series) -> None:
    """Steps may go back to a checkpoint, but not to the beginning of the run."""
    for (before, _), (step, _) in pairwise(values):
        if step < before and step <= values[0][0]:
            raise InputError(
                f"{name}: steps must increase, got {before:,} followed by {step:,}, as in a second run: "
                "sort the rows by step, or number the runs in a column named 'run'"
            )


def _read_events(path: Path, columns: LogColumns, grouped: GroupedWarnings) -> list[Trace]:
    """Each folder with event files is a run. A folder without a rate or a loss is left out with a warning."""
    files_by_folder: dict[Path, list[Path]] = {}
    for file in event_files(path):
        files_by_folder.setdefault(file.parent, []).append(file)
    traces, refused = list[Trace](), dict[Path, InputError]()
    for folder, files in files_by_folder.items():
        try:
            traces += _read_event_folder(path if path.is_file() else folder, files, columns, grouped)
        except InputError as error:
            refused[folder] = error
    if not traces:
        raise next(iter(refused.values()))
    for folder, error in refused.items():
        grouped.add(f"left out: {error}", str(folder))
    return traces


def _read_event_folder(path: Path, files: Sequence[Path], columns: LogColumns, grouped: GroupedWarnings) -> list[Trace]:
    parts = [read_scalars([file]) for file in files]
    tags = list({tag: None for part in parts for tag in part})
    log, rate = str(path), constant_rate(columns.rate, tags)
    value_tag = choose_column(tags, VALUE, columns.value, log, grouped, thing="tag")
    rate_tag = None if rate is not None else choose_column(tags, RATE, columns.rate_name, log, grouped, thing="tag")
    runs = _split_runs(parts, value_tag)
    names = [f"{path}, run {number}" for number in range(1, len(runs) + 1)] if len(runs) > 1 else [log]
    return [
        build_trace(name, _rates(run, rate, rate_tag), run[value_tag], columns.mode)
        for name, run in zip(names, runs, strict=True)
    ]


def _split_runs(parts: Sequence[Scalars], value_tag: str) -> list[Scalars]:
    """The runs in one folder. A file continues the run before it, unless its values begin where that run began."""
    runs: list[Scalars] = [{}]
    for part in parts:
        values = runs[-1].get(value_tag)
        if values and value_tag in part and part[value_tag][0][0] <= values[0][0]:
            runs.append({})
        for tag, series in part.items():
            runs[-1].setdefault(tag, []).extend(series)
    return [run for run in runs if value_tag in run]
