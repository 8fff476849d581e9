"""Files that are written in full or not at all, and folders whose names are on disk."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # by file systems that cannot fsync a folder


def write_atomically(path: Path, write: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Write a file under a temporary name, wait until it is on disk, and rename it.

    Args:
        path: the file; folders above it are made.
        write: called with the open file.
        suffix: added to the name until the file is complete.
    """
    make_folder(path.parent)
    temporary = path.with_name(path.name + suffix)
    temporary.unlink(missing_ok=True)  # of a crash; a link in its place is not followed
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except Exception:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and wait until their names are on disk."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk. Without it, a power cut may undo a creation or a renaming."""
    if os.name != "posix":
        return  # Windows has no call for it
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
