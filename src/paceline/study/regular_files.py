"""The files of a study folder: only regular files that lie in it are read, and only as much as fits into memory.

In a stranger's folder a name may lead anywhere: to a pipe that never ends, to a device, or out of the folder.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from paceline.errors import InputError, JournalError

MAX_SETTINGS_BYTES = 64_000_000
MAX_BYTES = 8_000_000_000
OWN_NAMES = (
    "study.json",
    "journal.jsonl",
    "known.jsonl",
    "storage.json",
    "trials.json",
    "training.json",
    "lock",
    "checkpoints",
)
BEFORE_A_STUDY = {"lock", "journal.jsonl", "known.jsonl", "storage.json"}  # what a start that was cut off leaves
MOST_NAMED = 3  # files that an error names


def open_regular_file(path: Path, buffering: int = -1) -> BinaryIO | None:
    """A file, open to be read; None if there is none. It never waits, as opening a pipe would."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise JournalError(
            f"{path} cannot be opened ({error.strerror}): check it, or restore it from a copy"
        ) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise JournalError(f"{path} should be a file, got {_kind(mode)}: restore it from a copy")
    return os.fdopen(descriptor, "rb", buffering=buffering)


def read_regular_file(path: Path, most: int = MAX_BYTES) -> bytes | None:
    """The content of a file; None if there is none.

    Args:
        path: the file.
        most: bytes it may have.
    """
    file = open_regular_file(path)
    if file is None:
        return None
    with file:
        return file.read(_size(path, file, most))


def read_regular_lines(path: Path, most: int = MAX_BYTES) -> Generator[bytes]:
    """The lines of a file, each with its line feed, which the last may lack; none if there is no file.

    What is written to it meanwhile is left out. Arguments are those of `read_regular_file`.
    """
    file = open_regular_file(path)
    if file is None:
        return
    with file:
        left = _size(path, file, most)
        while line := file.readline(left):
            left -= len(line)
            yield line


def _size(path: Path, file: BinaryIO, most: int) -> int:
    size = os.fstat(file.fileno()).st_size
    if size > most:
        raise JournalError(f"{path} should have at most {most:,} bytes, got {size:,}: it was damaged, restore it")
    return size


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Turn what a disk says while a file of a study is written into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"{path} could not be written ({error.strerror or error}): "
            "free disk space and start the study again, it continues from the last whole line"
        ) from error


def refuse_links(folder: Path) -> None:
    """Refuse to write a study whose files are links: they may lead out of its folder."""
    for name in [*OWN_NAMES, *(f"{name}.tmp" for name in OWN_NAMES)]:
        if (folder / name).is_symlink():
            raise JournalError(
                f"{folder / name} should lie in the study's folder, got a link: move what it leads to here, or link "
                "the whole folder"
            )


def refuse_other_files(folder: Path) -> None:
    """Refuse to begin a study in a folder that holds something else. Hidden files do not count."""
    if not folder.is_dir() or (folder / "study.json").exists() or _has_content(folder / "journal.jsonl"):
        return
    found = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    others = [path.name for path in found if not _may_come_first(path)]
    if others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        raise InputError(
            f"expected a study or an empty folder, got {folder}, which holds {', '.join(others[:MOST_NAMED])}{more}: "
            "choose another folder for the study"
        )


def _may_come_first(path: Path) -> bool:
    """Whether this may lie in a study's folder before study.json does."""
    if path.name == "checkpoints":
        return path.is_dir() and not any(path.iterdir())
    return path.name in BEFORE_A_STUDY or path.name in {f"{name}.tmp" for name in OWN_NAMES}


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
