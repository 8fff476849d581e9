"""The last line of a checkpoint file: the fork and the step that it is of, and the SHA-256 of all bytes before.

torch ignores what comes after its own content. So the line is written once the content has passed, and is there without
a second look at it. Files of earlier versions end where torch's content ends.
"""

import re
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

from paceline.errors import TrainingError

CHUNK = 1 << 22  # bytes that are hashed at a time
IN_PARALLEL = 1 << 23  # from so many bytes on, a thread hashes while the disk writes or torch reads
LONGEST = 256  # bytes of a line
OLD_END = re.compile(rb"PK\x05\x06.{16}\x00\x00\Z", re.DOTALL)  # the last record of torch's files
_NAME = re.compile(r"(\d+)-(\d+)")
_LINE = re.compile(
    rb'\npaceline \{"format":1(?:,"fork":(\d{1,12}),"step":(\d{1,12}))?(,"sha256":"([0-9a-f]{64})"\}\n)\Z'
)


class SealedFile:
    """A file that torch writes to, front to back, and that hashes what passes.

    Args:
        file: where the bytes go.
        path: the checkpoint, whose name says fork and step.
    """

    def __init__(self, file: "BinaryIO | BytesIO", path: Path) -> None:
        self._file, self._path, self._hash = file, path, sha256()

    def write(self, content: Any) -> int:
        """Write and hash bytes."""
        if len(content) < IN_PARALLEL:
            self._hash.update(content)
            return self._file.write(content)
        hasher = Thread(target=self._hash.update, args=(content,))
        hasher.start()
        try:
            return self._file.write(content)
        finally:
            hasher.join()

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._file.flush()

    def seal(self) -> None:
        """Write the last line."""
        state = state_of(self._path)
        self.write(b'\npaceline {"format":1' + (b',"fork":%d,"step":%d' % state if state else b""))
        self._file.write(f',"sha256":"{self._hash.hexdigest()}"}}\n'.encode())


def state_of(path: Path) -> tuple[int, int] | None:
    """Fork and step by a checkpoint's name; None if it has another name."""
    name = _NAME.fullmatch(path.stem)
    return None if name is None else (int(name[1]), int(name[2]))


def check_seal(file: "BinaryIO | BytesIO", path: Path) -> None:
    """Refuse a checkpoint whose content has changed since it was written, or that is of another fork or step."""
    size = file.seek(0, 2)
    file.seek(max(0, size - LONGEST))
    end = file.read()
    line = _LINE.search(end)
    if line is None:
        if OLD_END.search(end) is None:
            raise ValueError("its end is damaged")
        return
    hashed, left = sha256(), size - len(end) + line.start(3)
    file.seek(0)
    while left and (chunk := file.read(min(CHUNK, left))):
        hashed.update(chunk)
        left -= len(chunk)
    if hashed.hexdigest().encode() != line[4]:
        raise ValueError("it is not what was written, its SHA-256 differs")
    written, expected = (line[1] and (int(line[1]), int(line[2]))), state_of(path)
    if written and expected and written != expected:
        raise TrainingError(
            f"the checkpoint {path} is of fork {written[0]} at step {written[1]:,}: files were swapped or renamed, "
            "restore it from a copy"
        )
