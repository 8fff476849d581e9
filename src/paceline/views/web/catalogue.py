"""The studies that are served: those in the folders that were given, by names that cannot mean anything else."""

import threading
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import InputError
from paceline.study import studies_below
from paceline.views.web.study_reader import StudyReader

MOST_HELD = 12_000  # events in memory, of all studies; those looked at longest ago are read again when wanted


class Catalogue:
    """Studies by name. A name is looked up among those found, it is never made into a path.

    Args:
        folders: study folders, or folders with studies somewhere below them.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise InputError(
                    f"expected a study's folder, or one with studies in it, got {str(folder)!r}: no folder"
                )
        self._given = [folder.resolve() for folder in folders]
        self._studies = dict[Path, StudyReader]()
        self._used = list[Path]()
        self._lock = threading.Lock()

    def names(self) -> dict[str, StudyReader]:
        """The studies there are now, the one written last first."""
        with self._lock:
            found = dict[str, Path]()
            for given in self._given:
                for folder in studies_below(given):
                    if folder in found.values():
                        continue
                    name = given.name if folder == given else folder.relative_to(given).as_posix()
                    name = name if name not in found else f"{given.name}/{name}"
                    found[_unused(name, found)] = folder
            recent = sorted(found.items(), key=lambda item: -_written(item[1]))
            return {name: self._studies.setdefault(folder, StudyReader(folder)) for name, folder in recent}

    def get(self, name: str) -> StudyReader | None:
        """The study of this name, read up to now; None where there is none."""
        study = self.names().get(name)
        if study is not None:
            study.refresh()
            self._make_room(study)
        return study

    def _make_room(self, wanted: StudyReader) -> None:
        with self._lock:
            self._used = [*(path for path in self._used if path != wanted.folder), wanted.folder]
            held = sum(self._studies[path].held for path in self._used)
            for path in self._used[:-1]:
                if held <= MOST_HELD:
                    break
                held -= self._studies[path].held
                self._studies[path].release()


def _written(folder: Path) -> float:
    try:
        return (folder / "journal.jsonl").stat().st_mtime
    except OSError:
        return 0.0


def _unused(name: str, taken: "dict[str, Path]") -> str:
    count = 2
    free = name
    while free in taken:
        free, count = f"{name}-{count}", count + 1
    return free
