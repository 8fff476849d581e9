"""The lines of a growing journal. Each is read once, when it is whole. The file is never locked or written.

A journal of 100,000 events is hundreds of megabytes, nearly all of it schedules, observations and grids. `StudyState`
needs the front of each line only, so the rest is not parsed until a page shows the event.
"""

import json
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

from paceline.errors import JournalError
from paceline.json_fields import shown, whole_number
from paceline.study import EVENTS, Head, is_intact, open_regular_file

CHUNK = 1 << 16
MAX_LINE = 1 << 25  # bytes; the longest lines hold grids of megabytes
_count = whole_number()
KINDS = {*EVENTS, "cloned"}  # the last is of format 1
_HEAD = re.compile(
    rb'\{"v":(\d{1,9}),"n":(\d{1,12}),"event":"(\w{1,20})"(?:,"fork":(\d{1,12}|null)|,"round":\d{1,12})?'
    rb'(?:,"parent":(\d{1,12}|null))?(?:,"start":(\d{1,12}))?(?:,"(?:stop|step)":(\d{1,12}))?[,}]'
)


class JournalTail:
    """A file that others append to.

    Args:
        path: the file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0
        self._inode: int | None = None

    def is_replaced(self, status: os.stat_result | None) -> bool:
        """Whether the file with this status, or None if there is no file, is not the one that was read so far."""
        if self._inode is None:
            return False
        return status is None or status.st_ino != self._inode or status.st_size < self.offset

    def lines(self) -> Generator[tuple[int, bytes]]:
        """Whole lines that were not read before, each with its offset. A torn last line is left for later."""
        file = open_regular_file(self.path, buffering=0)
        if file is None:
            return
        with file:
            status = os.fstat(file.fileno())
            self._inode, left = status.st_ino, status.st_size - self.offset  # what comes meanwhile is read next time
            file.seek(self.offset)
            parts = list[bytes]()  # of a line that is longer than a chunk
            while left > 0 and (chunk := file.read(min(CHUNK, left))):
                left -= len(chunk)
                end = chunk.rfind(b"\n") + 1
                if not end:
                    parts.append(chunk)
                    if len(parts) * CHUNK > MAX_LINE:
                        raise JournalError(
                            f"a line is longer than {MAX_LINE:,} bytes: the journal was damaged, restore it"
                        )
                    continue
                whole, parts = b"".join([*parts, chunk[:end]]), [chunk[end:]]
                for content in whole.split(b"\n")[:-1]:
                    line = content + b"\n"
                    yield self.offset, line
                    self.offset += len(line)


def read_head(line: bytes) -> tuple[int, Head]:
    """The number of a line and the head of its event: from its front, or from all of it if the front looks odd."""
    front = _HEAD.match(line)
    if front is not None and (kind := front[3].decode()) in KINDS:
        version, number, _, *rest = front.groups()
        _check_intact(line, int(version))
        return int(number), Head(kind, *(None if part is None or part == b"null" else int(part) for part in rest))
    try:
        data: dict[str, Any] = json.loads(line)
        version, number, kind = _count(data["v"]), _count(data["n"]), str(data["event"])
        given = (data.get("fork"), data.get("parent"), data.get("start"), data.get("stop", data.get("step")))
        head = Head(kind, *(None if value is None else _count(value) for value in given))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise JournalError(
            f"a line is not an event ({error}): the journal was edited or damaged, restore it"
        ) from error
    if kind not in KINDS:
        raise JournalError(f"unknown event {shown(kind)}: expected one of {', '.join(EVENTS)}")
    _check_intact(line, version)
    return number, head


def _check_intact(line: bytes, version: int) -> None:
    if not is_intact(line, version):
        raise JournalError("a line does not have its checksum: the journal was edited or damaged, restore it")
