"""training.json: what the trainings of a study consisted of when it began, to notice later what has changed.

It is a help and decides nothing. Studies made before there was such a file have none, and it may be deleted.
"""

import json
from pathlib import Path
from typing import Any, cast

from paceline.errors import JournalError
from paceline.files import write_atomically
from paceline.study.regular_files import read_regular_file

Fingerprints = dict[str, dict[str, dict[str, str]]]  # by task, group and name
MAX_BYTES = 10_000_000


def read_training_record(folder: Path) -> Fingerprints:
    """The fingerprints of a study's trainings, by task; empty if it has none."""
    path = folder / "training.json"
    content = read_regular_file(path, MAX_BYTES)
    if content is None:
        return {}
    try:
        found: Any = json.loads(content)
        if not _is_table(found, depth=3):
            raise ValueError("expected texts by task, group and name")
    except (ValueError, RecursionError) as error:
        raise JournalError(
            f"{path} cannot be read ({error}): it was edited or damaged, restore or delete it; it only serves to "
            "notice a changed training"
        ) from error
    return found


def write_training_record(folder: Path, fingerprints: Fingerprints) -> None:
    """Write the fingerprints of a study's trainings."""
    text = json.dumps(fingerprints, indent=1) + "\n"
    write_atomically(folder / "training.json", lambda file: file.write(text.encode()))


def _is_table(value: Any, depth: int) -> bool:
    """Whether these are objects inside objects, with texts at the innermost."""
    if depth == 0:
        return isinstance(value, str)
    return isinstance(value, dict) and all(
        _is_table(item, depth - 1) for item in cast("dict[str, Any]", value).values()
    )
