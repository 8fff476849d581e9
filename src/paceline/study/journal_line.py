"""One line of a journal: an event as a JSON object, and at its end a checksum of all bytes before it."""

import json
import re
from pathlib import Path
from typing import Any
from zlib import crc32

from paceline.errors import JournalError
from paceline.json_fields import shown
from paceline.study.events import FORMAT, Event, from_json, to_json
from paceline.study.format1 import upgrade_event

FIRST_WITH_CHECKSUM = 3
_END = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\n\Z')


def write_line(number: int, event: Event) -> bytes:
    """The line of an event; `number` counts lines from 0."""
    data = {"v": FORMAT, "n": number, **to_json(event)}
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return content + b',"crc32":"%08x"}\n' % crc32(content)


def is_intact(line: bytes, version: int) -> bool:
    """Whether a line ends with the checksum of all that comes before it. Lines of older formats have none."""
    end = _END.search(line, max(0, len(line) - 32))
    if end is None:
        return version < FIRST_WITH_CHECKSUM
    return int(end[1], 16) == crc32(line[: end.start()])


def read_line(path: Path, number: int, line: bytes) -> Event | None:
    """The event of a whole line; None if only an older format had it. `number` counts lines from 0."""
    return parse_line(path, number, line)[1]


def parse_line(path: Path, number: int, line: bytes) -> tuple[int, Event | None]:
    """The format of a whole line, and its event."""
    where = f"{path}, line {number + 1}"
    try:
        data: dict[str, Any] = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{where} is not JSON ({error}): the journal was edited or damaged, restore it") from error
    if not isinstance(data, dict) or "v" not in data:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise JournalError(f"{where} is not an event: the journal was edited or damaged, restore it")
    version = data["v"]
    if type(version) is not int or version < 1:
        raise JournalError(f"{where} has no whole number as its format: the journal was edited or damaged, restore it")
    if version > FORMAT:
        raise JournalError(f"{where} has format {version}, this version reads up to {FORMAT}: install a newer paceline")
    if not is_intact(line, version):
        raise JournalError(f"{where} does not have its checksum: the journal was edited or damaged, restore it")
    if data.get("n") != number:
        raise JournalError(
            f"{where} should be event {number}, got {shown(data.get('n'))}: a line is missing or was added"
        )
    try:
        present = upgrade_event(data) if version == 1 else data
        return version, None if present is None else from_json(present)
    except (JournalError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise JournalError(f"{where}: {error}") from error
