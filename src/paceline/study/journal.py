"""An append-only file of events: one JSON object a line, on disk before the study goes on, one writer at a time."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from paceline.errors import InputError, JournalError, StudyLockedError
from paceline.json_fields import shown
from paceline.study.events import FORMAT, Event, from_json, to_json
from paceline.study.format1 import upgrade_event
from paceline.study.regular_files import read_regular_file, refuse_links


def read_journal(path: Path) -> list[Event]:
    """All whole lines, in order; a torn last line is left out."""
    return _parse(path)[0]


def _parse(path: Path) -> tuple[list[Event], int, int]:
    """Events, and the number and bytes of whole lines."""
    content = read_regular_file(path)
    if content is None:
        return [], 0, 0
    events, lines, whole = list[Event](), 0, 0
    for line in content.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break  # torn by a crash while it was written
        event = read_line(path, lines, line)
        events += [event] if event is not None else []
        lines, whole = lines + 1, whole + len(line)
    return events, lines, whole


def read_line(path: Path, number: int, line: bytes) -> Event | None:
    """The event of a whole line; None if only an older format had it. `number` counts lines from 0."""
    where = f"{path}, line {number + 1}"
    try:
        data: dict[str, Any] = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{where} is not JSON ({error}): the journal was edited or damaged, restore it") from error
    if not isinstance(data, dict) or "v" not in data:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise JournalError(f"{where} is not an event: the journal was edited or damaged, restore it")
    if type(data["v"]) is not int or data["v"] < 1:
        raise JournalError(f"{where} has no whole number as its format: the journal was edited or damaged, restore it")
    if data["v"] > FORMAT:
        raise JournalError(
            f"{where} has format {data['v']}, this version reads up to {FORMAT}: install a newer paceline"
        )
    if data.get("n") != number:
        raise JournalError(
            f"{where} should be event {number}, got {shown(data.get('n'))}: a line is missing or was added"
        )
    try:
        present = upgrade_event(data) if data["v"] == 1 else data
        return None if present is None else from_json(present)
    except (JournalError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise JournalError(f"{where}: {error}") from error


def write_line(number: int, event: Event) -> bytes:
    """The line of an event; `number` counts lines from 0."""
    data = {"v": FORMAT, "n": number, **to_json(event)}
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _lock(folder: Path) -> BaseFileLock:
    """The lock of a study folder. The operating system holds it, so it ends when the process ends, even if killed."""
    # one lock for all threads: a study may be closed by another thread than the one that opened it
    lock = FileLock(folder / "lock", timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise StudyLockedError(
            f"{folder} is being written by another process: wait for it, stop it, or choose another study folder"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise InputError(
            f"expected a study folder with a lock that can be taken, got {folder} ({error}): "
            "choose a folder that you may write to, on a disk that supports file locks"
        ) from error
    return lock


class Journal:
    """The writer. Holds the folder's lock while it is open; use it in a `with` block.

    Args:
        folder: the study folder; it is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"expected a folder to keep the study in, got {folder}, which is a file: choose another path"
            ) from error
        refuse_links(folder)
        self.path = folder / "journal.jsonl"
        self._lock = _lock(folder)
        try:
            self.events, self.lines, whole = _parse(self.path)
            self._file = self.path.open("ab", buffering=0)  # a line that cannot be written must not come back on close
            if self._file.tell() > whole:
                self._file.truncate(whole)
        except BaseException:
            self._lock.release()
            raise

    def append(self, *events: Event) -> None:
        """Write events and wait until they are on disk."""
        lines = [write_line(self.lines + i, event) for i, event in enumerate(events)]
        rest = memoryview(b"".join(lines))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise JournalError(
                f"{self.path} could not be written ({error.strerror or error}): "
                "free disk space and start the study again, it continues from the last whole line"
            ) from error
        self.events += events
        self.lines += len(events)

    def close(self) -> None:
        """Release the file and the lock."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
