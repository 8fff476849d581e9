"""Tables, `RESULT` lines and the settings they were measured under."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

_results: list[tuple[str, float]] = []


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns of equal width; numbers to three significant digits."""
    cells = [list(header)] + [[f"{c:.3g}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def mean_and_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean of independent values and the ends of its 95 % interval."""
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - 1.96 * error, mean + 1.96 * error


def machine() -> str:
    """Commit, machine and versions: what a timing depends on."""
    names = ", ".join(f"{name} {version(name)}" for name in ("torch", "gpytorch", "scipy", "numpy"))
    command = ["git", "rev-parse", "--short", "HEAD"]
    process = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    commit = os.environ.get("PACELINE_COMMIT") or process.stdout.strip()  # set it for a copy without history
    where = f"{platform.machine()}, {os.cpu_count()} cores"
    return f"commit {commit}, {where}, Python {platform.python_version()}, {names}"


def result(name: str, value: float) -> None:
    """Keep a number that is printed last, as `RESULT name value`."""
    _results.append((name, value))


def print_results() -> None:
    """Print these numbers."""
    for name, value in _results:
        print(f"RESULT {name} {value:.6g}")


def read_rows(rows: Path) -> list[dict[str, Any]]:
    """Rows from a file of JSON lines; none if there is no file yet."""
    return [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []


def with_error(values: Sequence[float]) -> str:
    """Mean, standard error and how many."""
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} +- {error:.3f} ({len(values)})"
