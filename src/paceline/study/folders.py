"""Which study folders lie at a folder or below it."""

import os
from pathlib import Path

DEPTH = 5  # levels of folders that are searched, the given one first


def studies_below(given: Path) -> list[Path]:
    """Study folders at or below one, without looking inside a study or following links out of it."""
    return search_studies(given)[0]


def search_studies(given: Path) -> tuple[list[Path], dict[Path, int | None]]:
    """The same, and the folders that were searched, with the time at which each was changed last.

    A study that comes or goes changes the time of one of these folders, so that they need not be searched again before.
    """
    studies, searched, level = list[Path](), dict[Path, int | None](), [given]
    for _ in range(DEPTH):
        deeper = list[Path]()
        for folder in level:
            searched[folder] = changed_at(folder)  # before it is searched: what comes meanwhile changes the time again
            if _is_study(folder):
                studies.append(folder)
            else:
                deeper += _folders_in(folder)
        level = deeper
    return sorted(studies), searched


def changed_at(folder: Path) -> int | None:
    """When a folder was changed last, in ns; None if it cannot be read."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


def _is_study(folder: Path) -> bool:
    """Whether this is a study whose journal lies in it. A journal that is a link may lead anywhere."""
    return os.path.isfile(folder / "study.json") and not os.path.islink(folder / "journal.jsonl")


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []
