"""study.json: what a study was set up with, written once."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from paceline.errors import JournalError
from paceline.files import write_atomically
from paceline.study.events import FORMAT
from paceline.study.folders import studies_below
from paceline.study.format1 import upgrade_settings

MOST_NAMED = 50  # studies that an error names if the folder given is not a study itself


def write_settings(folder: Path, settings: dict[str, Any], seed: int) -> None:
    """Write study.json, once."""
    data = {
        "format": FORMAT,
        "paceline": _version("paceline"),
        "versions": {"python": platform.python_version(), "torch": _version("torch"), "numpy": _version("numpy")},
        "seed": seed,
        "settings": settings,
    }
    text = json.dumps(data, indent=1) + "\n"
    write_atomically(folder / "study.json", lambda file: file.write(text.encode()))


def read_settings(folder: Path) -> dict[str, Any]:
    """Read study.json, or say what is wrong with it."""
    path = folder / "study.json"
    if not path.exists():
        below = [study.relative_to(folder).as_posix() for study in studies_below(folder)]
        more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
        do = f"it holds studies, name one: {', '.join(below[:MOST_NAMED])}{more}" if below else "check the path"
        raise JournalError(f"{folder} is not a study: expected a folder with study.json, {do}")
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        written = int(data["format"])
        if written <= FORMAT:
            dict(data["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path} cannot be read ({error}): it was edited or damaged, restore it") from error
    if written > FORMAT:
        raise JournalError(
            f"{path} was written by paceline {data.get('paceline')} in format {written}, this version reads up to "
            f"{FORMAT}: install a newer paceline"
        )
    return {**data, "settings": upgrade_settings(data["settings"])} if written == 1 else data


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
