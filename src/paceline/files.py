"""Files that are there in full or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, put: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Have `put` write a file under a temporary name, wait until it is on disk, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + suffix)
    try:
        with temporary.open("wb") as file:
            put(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except Exception:
        temporary.unlink(missing_ok=True)
        raise
