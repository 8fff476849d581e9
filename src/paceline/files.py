"""Files that are written in full or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, write: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Write a file under a temporary name, wait until it is on disk, and rename it.

    Args:
        path: the file; folders above it are made.
        write: called with the open file.
        suffix: added to the name until the file is complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + suffix)
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except Exception:
        temporary.unlink(missing_ok=True)
        raise
