"""The studies that are served, by name: those in the folders that were given."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import InputError, PacelineError
from paceline.safe_text import safe_text
from paceline.study import changed_at, search_studies
from paceline.views.web.study_reader import StudyReader

MAX_EVENTS = 12_000  # in memory, of all studies; those asked for longest ago are read again when wanted
FOLDER_PAUSE = 2.0  # seconds between two looks at the folders
PATIENCE = 2.0  # seconds that a request waits for another one that reads the same journal
SETTLED_AFTER = 2.0  # seconds: some disks round times to this, so a later change of a folder may not show


class StillReadingError(PacelineError):
    """A journal is so long that another thread is still reading it."""


class Catalogue:
    """Studies by name. A name is looked up among the known ones and never made into a path.

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
        self._readers = dict[Path, StudyReader]()
        self._names = dict[str, StudyReader]()
        self._searched = dict[Path, int | None]()  # every folder that a study may come in, and when it was changed
        self._looked_at = -FOLDER_PAUSE
        self._recent = list[Path]()
        self._lock = threading.Lock()

    def studies(self) -> dict[str, StudyReader]:
        """The studies, the one written last first. Folders are looked at once every two seconds at most."""
        self.look(FOLDER_PAUSE)
        return dict(sorted(self._names.items(), key=lambda item: -item[1].written))

    def find(self, name: str) -> StudyReader | None:
        """The study of this name, as it was read last; None if there is none. No folder is touched for a known name."""
        if name not in self._names:
            self.look(FOLDER_PAUSE)
        return self._names.get(name)

    def get(self, name: str) -> StudyReader | None:
        """The study of this name, read up to now; None if there is none. An error if that takes too long."""
        study = self.find(name)
        if study is not None:
            if not study.refresh(PATIENCE):
                raise StillReadingError(
                    f"Reading {study.path.name}: {study.share_read:.0%} of {study.size / 1e6:,.0f} MB so far."
                )
            self._make_room(study)
        return study

    def look(self, max_age: float = 0.0) -> None:
        """Find the studies again if a folder has changed since the last look, which is older than `max_age` seconds."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_at < max_age:
                return
            self._looked_at = now
            if not self._searched or any(changed_at(folder) != time_ for folder, time_ in self._searched.items()):
                self._search()

    def _search(self) -> None:
        """Search the folders. One that was changed a moment ago is searched again at the next look."""
        names, searched = dict[str, Path](), dict[Path, int | None]()
        for given in self._given:
            studies, folders = search_studies(given)
            searched |= folders
            for folder in studies:
                if folder in names.values():
                    continue
                name = safe_text(given.name if folder == given else folder.relative_to(given).as_posix())
                name = name if name not in names else f"{safe_text(given.name)}/{name}"
                names[_unused_name(name, names)] = folder
        settled = time.time_ns() - int(SETTLED_AFTER * 1e9)
        self._searched = {f: at if at is None or at < settled else -1 for f, at in searched.items()}
        self._names = {name: self._reader(folder) for name, folder in names.items()}

    def _reader(self, folder: Path) -> StudyReader:
        if folder not in self._readers:
            self._readers[folder] = StudyReader(folder)
            self._readers[folder].has_changed()
        return self._readers[folder]

    def _make_room(self, wanted: StudyReader) -> None:
        with self._lock:
            self._recent = [*(path for path in self._recent if path != wanted.folder), wanted.folder]
            events = sum(self._readers[path].events_in_memory for path in self._recent)
            for path in self._recent[:-1]:
                if events <= MAX_EVENTS:
                    break
                events -= self._readers[path].events_in_memory
                self._readers[path].release()


def _unused_name(name: str, taken: "dict[str, Path]") -> str:
    unused, count = name, 2
    while unused in taken:
        unused, count = f"{name}-{count}", count + 1
    return unused
