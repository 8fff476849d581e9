"""A study that is read as it grows, and the views that figures, tables and text are made from."""

import os
import stat
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.errors import JournalError
from paceline.safe_text import safe_text
from paceline.study import UNREADABLE, StudyState
from paceline.views.data import StudyView
from paceline.views.decision_text import DecisionText, decision_text
from paceline.views.projection import study_view
from paceline.views.web.journal_lines import JournalLines
from paceline.views.web.journal_tail import JournalTail, read_head
from paceline.views.web.selection import select_all, select_part

WHOLE_BYTES, WHOLE_LINES, WHOLE_FORKS = 4_000_000, 4_000, 200  # a study up to here is shown whole
MAX_VIEWS = 4  # in memory, of each study
LONG_READ, RETRY_FACTOR = 0.5, 20  # seconds; a damaged journal that takes longer rests for so many times that time


class StudyReader:
    """A study folder that is read as it grows. Any thread may call it.

    Args:
        folder: the study folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "journal.jsonl"
        self._lock = threading.RLock()
        self._status: os.stat_result | None = None
        self.epoch = -1
        self._retry_at = 0.0
        self._start_again()

    def _start_again(self) -> None:
        self._tail, self._lines = JournalTail(self.path), JournalLines(self.path)
        self.state = StudyState(self._lines)
        self._views: dict[tuple[Any, ...], StudyView] = {}
        self._status_read: tuple[int, ...] | None = None
        self.problem = ""
        self.epoch += 1

    def has_changed(self) -> bool:
        """Look at the journal without opening it: whether it may differ from what was read."""
        self._status = _file_status(self.path)
        return _key(self._status) != self._status_read

    def refresh(self, patience: float = -1) -> bool:
        """Read what is new. A journal that was replaced, as by a study that began anew, is read from its start.

        Args:
            patience: seconds to wait if another thread is reading the journal; -1 waits until it is done.

        Returns:
            Whether all of it has been read; False if another thread is still reading.
        """
        if not self._lock.acquire(timeout=patience):
            return False
        try:
            began = time.monotonic()
            if began >= self._retry_at:
                self._read_changes()
                took = time.monotonic() - began
                self._retry_at = began + RETRY_FACTOR * took if self.problem and took >= LONG_READ else 0.0
        finally:
            self._lock.release()
        return True

    def _read_changes(self) -> None:
        with self._lock:
            if not self.has_changed():
                return
            status = self._status
            if self.problem or self._tail.is_replaced(status):
                self._start_again()
            is_new = self._tail.offset == 0
            try:
                if status is not None:
                    self._read_lines()
            except UNREADABLE as error:
                self._start_again()
                if not is_new:  # it may have been replaced by one that has grown as long
                    self._read_changes()
                    return
                self.problem = safe_text(f"{self.path.name}: {error}")
            self._status_read = _key(status)

    def _read_lines(self) -> None:
        for offset, line in self._tail.lines():
            number, head = read_head(line)
            if number != self.state.count:
                raise JournalError(
                    f"line {self.state.count + 1} should be event {self.state.count}, got {number}: "
                    "a line is missing or was added"
                )
            self._lines.offsets.append(offset)
            self.state.add(head)
            self._views.clear()

    @property
    def share_read(self) -> float:
        """How much of the journal has been read."""
        return min(self._tail.offset / max(self.size, 1), 1.0)

    @property
    def revision(self) -> str:
        """Changes whenever what is shown does."""
        return f"{self.epoch}.{self.state.count}{'!' if self.problem else ''}"

    @property
    def whole(self) -> bool:
        """Whether all of the study is shown."""
        few = self.state.count <= WHOLE_LINES and len(self.state.forks) <= WHOLE_FORKS
        return few and self._tail.offset <= WHOLE_BYTES

    @property
    def size(self) -> int:
        """Bytes of the journal when it was looked at last; 0 if there is none."""
        return 0 if self._status is None else self._status.st_size

    @property
    def written(self) -> float:
        """When the journal was written last, in seconds since 1970, as of the last look; 0 if there is none."""
        return 0.0 if self._status is None else self._status.st_mtime

    @property
    def version(self) -> str:
        """Changes whenever the file does, as of the last look."""
        return "-".join(map(str, _key(self._status)))

    @property
    def events_in_memory(self) -> int:
        """How many events are kept in memory."""
        return len(self._lines.parsed)

    def release(self) -> None:
        """Forget what can be read again."""
        with self._lock:
            self._lines.release()
            self._views.clear()

    def settings(self) -> dict[str, Any]:
        """What the study was set up with; empty before its first line."""
        with self._lock:
            return self.state.settings

    def view(self, *, forks: Sequence[int] = (), decision: int | None = None) -> StudyView:
        """The study so far, or as it was when a decision had been made; read once for each revision.

        Args:
            forks: numbers of forks that must be there.
            decision: number of the decision, from 0.
        """
        with self._lock:
            if self.problem:
                raise JournalError(self.problem)
            key = (() if self.whole else tuple(forks), decision)
            if key not in self._views:
                self._views[key] = self._read(forks, decision)
                while len(self._views) > MAX_VIEWS:
                    del self._views[next(iter(self._views))]
            return self._views[key]

    def _read(self, forks: Sequence[int], decision: int | None) -> StudyView:
        if self.whole:
            self._lines.keep_grids_of(None)
            with self._lines.reading():
                return study_view(self.state, select_all(self.state, decision))
        decisions = self.state.decisions
        latest = decisions[-1 if decision is None else decision].event if decisions else 0
        self._lines.keep_grids_of(latest)
        is_main = decision is None and not forks  # read again whenever the study grows: its events stay in memory
        with self._lines.keeping_used() if is_main else self._lines.forgetting_new():
            return study_view(self.state, select_part(self.state, forks, decision))

    def decision_text(self, decision: int) -> DecisionText:
        """A decision in English. Of a large study, its events are not kept in memory."""
        with self._lock, self._lines.reading() if self.whole else self._lines.forgetting_new():
            return decision_text(self.state, decision)

    def latest_decisions(self, end: int, most: int, size: int) -> range:
        """The decisions before one, latest first: as many as asked for, fewer if they are large."""
        decisions = self.state.decisions
        offsets = self._lines.offsets
        stop = offsets[decisions[end].event] if end < len(decisions) else self._tail.offset
        first = end
        while first > 0 and end - first < most:
            if first < end and stop - offsets[decisions[first - 1].event] > size:
                break
            first -= 1
        return range(end - 1, first - 1, -1)


def _file_status(path: Path) -> os.stat_result | None:
    """The status of a file, None if there is none. A link is no file: it may lead anywhere."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _key(status: os.stat_result | None) -> tuple[int, ...]:
    """What tells a file from what it was."""
    return () if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)
