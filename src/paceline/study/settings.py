"""study.json: what a study was set up with, written once."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from paceline.errors import JournalError
from paceline.files import write_atomically
from paceline.json_fields import shown, whole_number
from paceline.study.events import FORMAT
from paceline.study.folders import studies_below
from paceline.study.format1 import upgrade_settings
from paceline.study.recorded_fields import read_settings_fields
from paceline.study.regular_files import MAX_SETTINGS_BYTES, read_regular_file, writing

_read_format = whole_number(1, 1_000_000)
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
    with writing(folder / "study.json"):
        write_atomically(folder / "study.json", lambda file: file.write(text.encode()))


def read_settings(folder: Path) -> dict[str, Any]:
    """Read study.json, or say what is wrong with it."""
    path = folder / "study.json"
    content = read_regular_file(path, MAX_SETTINGS_BYTES)
    if content is None:
        below = [study.relative_to(folder).as_posix() for study in studies_below(folder)]
        more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
        do = f"it holds studies, name one: {', '.join(below[:MOST_NAMED])}{more}" if below else "check the path"
        raise JournalError(f"{folder} is not a study: expected a folder with study.json, {do}")
    try:
        data: dict[str, Any] = json.loads(content)
        written = _read_format(data["format"])
        if written > FORMAT:
            raise JournalError(
                f"{path} was written by paceline {_version_text(data.get('paceline'))} in format {written}, this "
                f"version reads up to {FORMAT}: install a newer paceline"
            )
        settings: Any = dict(data["settings"])
        return {**data, "settings": read_settings_fields(upgrade_settings(settings) if written == 1 else settings)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise JournalError(f"{path} cannot be read ({error}): it was edited or damaged, restore it") from error


def _version_text(written: Any) -> str:
    return written if isinstance(written, str) and len(written) < MOST_NAMED else shown(written)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
