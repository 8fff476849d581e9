"""Where studies lie: those at a folder or below it, for who names the folder that holds them."""

import os
from pathlib import Path

DEPTH = 5  # levels of folders that are looked through, the given one first


def studies_below(given: Path) -> list[Path]:
    """Study folders at or below one, without looking inside a study or following links out of it."""
    found, level = list[Path](), [given]
    for _ in range(DEPTH):
        deeper = list[Path]()
        for folder in level:
            if _is_study(folder):
                found.append(folder)
            else:
                deeper += _folders_in(folder)
        level = deeper
    return sorted(found)


def _is_study(folder: Path) -> bool:
    """Whether it is one, whose journal lies in it: a link may lead anywhere. Not where it may not be read."""
    return os.path.isfile(folder / "study.json") and not os.path.islink(folder / "journal.jsonl")


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []
