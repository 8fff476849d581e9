"""An append-only file of events: one JSON object a line, on disk before the study goes on, one writer at a time."""

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from paceline.errors import InputError, JournalError
from paceline.files import make_folder, sync_folder, write_atomically
from paceline.study.events import Event
from paceline.study.journal_line import parse_line, write_line
from paceline.study.lock import lock_folder
from paceline.study.regular_files import read_regular_lines, refuse_links, refuse_other_files, writing


def read_journal(path: Path) -> list[Event]:
    """All whole lines, in order; a torn last line is left out."""
    return _parse(path)[0]


class _Extent(NamedTuple):
    """How much of a journal is known to be whole: events, lines and bytes."""

    events: int
    lines: int
    size: int


def _parse(path: Path) -> tuple[list[Event], _Extent, bytes]:
    """Events, their extent, and the rest: a line torn by a crash while it was written."""
    events, number, size, latest = list[Event](), 0, 0, 1
    with _without_collection():
        for line in read_regular_lines(path):
            if not line.endswith(b"\n"):
                return events, _Extent(len(events), number, size), line
            version, event = parse_line(path, number, line)
            number += 1
            if version < latest:
                raise JournalError(
                    f"{path}, line {number} has format {version} after one of format {latest}: the journal was edited "
                    "or damaged, restore it"
                )
            latest, size = version, size + len(line)
            if event is not None:
                events.append(event)
    return events, _Extent(len(events), number, size), b""


@contextmanager
def _without_collection() -> Generator[None]:
    """Make many objects without looking for cycles among them again and again: events have none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Journal:
    """The writer. Holds the folder's lock while it is open; use it in a `with` block.

    Attributes:
        events: what is on disk, in order.

    Args:
        folder: the study folder; it is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        try:
            make_folder(folder)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"expected a folder to keep the study in, got {folder}, which is a file: choose another path"
            ) from error
        refuse_links(folder)
        refuse_other_files(folder)
        self.path, self._process = folder / "journal.jsonl", os.getpid()
        self._lock = lock_folder(folder)
        try:
            self.events, self._known, rest = _parse(self.path)
            self._file = self.path.open("ab", buffering=0)  # a line that cannot be written must not come back on close
        except BaseException:
            self._lock.release()
            raise
        try:
            if rest:
                self._keep(rest)
            self._is_dirty = bool(rest)
            self.repair()
            sync_folder(folder)
        except BaseException:
            self.close()
            raise

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return self._known.lines

    def append(self, *events: Event) -> None:
        """Write events and wait until they are on disk. If that fails, none of them stays."""
        self.repair()
        self._check_place()
        content = b"".join(write_line(self.lines + i, event) for i, event in enumerate(events))
        self._is_dirty = True
        try:
            with writing(self.path):
                rest = memoryview(content)
                while rest:
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
        except BaseException:
            with suppress(JournalError):  # else before the next event
                self.repair()
            raise
        self.events += events
        self._known = _Extent(len(self.events), self.lines + len(events), self._known.size + len(content))
        self._is_dirty = False

    def repair(self) -> None:
        """Take back a write that was interrupted, so that the file holds `events` and nothing else."""
        if self._is_dirty:
            del self.events[self._known.events :]
            with writing(self.path):
                self._file.truncate(self._known.size)
                os.fsync(self._file.fileno())
            self._is_dirty = False

    def close(self) -> None:
        """Release the file and the lock."""
        self._file.close()
        self._lock.release()

    def _keep(self, rest: bytes) -> None:
        """Keep what is about to be cut off in a file of its own."""
        number = 1
        while (path := self.path.with_name(f"journal.cut-{number}")).exists():
            number += 1
        with writing(path):
            write_atomically(path, lambda file: file.write(rest))

    def _check_place(self) -> None:
        """Refuse to write to a file that is not the study's any more."""
        if os.getpid() != self._process:
            raise JournalError(
                f"{self.path} was opened by the process that this one was forked from: only that one may write it"
            )
        written, found = os.fstat(self._file.fileno()), None
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.stat(self.path, follow_symlinks=False)
        if found is None or not os.path.samestat(written, found):
            raise JournalError(
                f"{self.path} was deleted, moved or replaced while the study ran: move it back and start the study "
                "again, or choose another study folder"
            )
        if written.st_size != self._known.size:
            raise JournalError(
                f"{self.path} should have {self._known.size:,} bytes, got {written.st_size:,}: another program "
                "wrote to it, restore it"
            )

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
