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
_DECODER = json.JSONDecoder()
RESTORE = "the journal was edited or damaged, restore it"
_CHECKSUM = b',"crc32":"%08x"}\n'
_LENGTH = len(_CHECKSUM % 0)
_END = re.compile(rb',"crc32":"[0-9a-f]{8}"\}\n\Z')


def write_line(number: int, event: Event) -> bytes:
    """The line of an event; `number` counts lines from 0."""
    data = {"v": FORMAT, "n": number, **to_json(event)}
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return content + _CHECKSUM % crc32(content)


def _decoded(text: str) -> Any:
    """The JSON that a line consists of."""
    data, end = _DECODER.raw_decode(text)
    if text[end:] != "\n" and text[end:].strip(" \t\r\n"):
        raise ValueError(f"more follows after character {end}")
    return data


def is_intact(line: bytes, version: int) -> bool:
    """Whether a line ends with the checksum of all that comes before it. Lines of older formats have none."""
    if line[-_LENGTH:] == _CHECKSUM % crc32(line[:-_LENGTH]):
        return True
    return version < FIRST_WITH_CHECKSUM and _END.search(line, max(0, len(line) - _LENGTH)) is None


def read_line(path: Path, number: int, line: bytes) -> Event | None:
    """The event of a whole line; None if only an older format had it. `number` counts lines from 0."""
    return parse_line(path, number, line)[1]


def _wrong(path: Path, number: int, problem: str) -> JournalError:
    return JournalError(f"{path}, line {number + 1}{problem}")


def parse_line(path: Path, number: int, line: bytes) -> tuple[int, Event | None]:
    """The format of a whole line, and its event."""
    try:
        data: dict[str, Any] = _decoded(line.decode())
    except (ValueError, RecursionError) as error:
        raise _wrong(path, number, f" is not JSON ({error}): {RESTORE}") from error
    if not isinstance(data, dict) or "v" not in data:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong(path, number, f" is not an event: {RESTORE}")
    version = data["v"]
    if type(version) is not int or version < 1:
        raise _wrong(path, number, f" has no whole number as its format: {RESTORE}")
    if version > FORMAT:
        raise _wrong(
            path, number, f" has format {version}, this version reads up to {FORMAT}: install a newer paceline"
        )
    if not is_intact(line, version):
        raise _wrong(path, number, f" does not have its checksum: {RESTORE}")
    if data.get("n") != number:
        raise _wrong(
            path, number, f" should be event {number}, got {shown(data.get('n'))}: a line is missing or was added"
        )
    try:
        present = upgrade_event(data) if version == 1 else data
        return version, None if present is None else from_json(present)
    except (JournalError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise _wrong(path, number, f": {error}") from error
