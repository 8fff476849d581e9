"""Checkpoints: whole files or none, and nothing in them that could run code."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from paceline.errors import TrainingError
from paceline.files import write_whole
from paceline.training.layout import LAYOUT, flattened, restored


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Write a state under a temporary name, wait until it is on disk, and rename it."""
    write_checkpoint(path, lambda file: torch.save(flattened(state), file))  # pyright: ignore[reportUnknownMemberType]


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a state, onto the CPU; only tensors and plain data are accepted."""
    return _read(found(path), path)


def pack(state: dict[str, Any]) -> memoryview:
    """A state as the bytes of its checkpoint, to be sent elsewhere."""
    file = io.BytesIO()
    torch.save(flattened(state), file)  # pyright: ignore[reportUnknownMemberType]
    return file.getbuffer()


def unpack(packed: Any, path: Path) -> dict[str, Any]:
    """The state in the bytes of a checkpoint, which `path` names in messages."""
    return _read(io.BytesIO(packed), path)


def found(path: Path) -> Path:
    """The path of a checkpoint that is there."""
    if not path.exists():
        raise TrainingError(
            f"the checkpoint {path} is missing: restore it from a copy, or start a new study; "
            "the journal keeps what was learnt"
        )
    return path


def write_checkpoint(path: Path, put: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Have `put` write a checkpoint, whole or not at all; or say what the disk said."""
    try:
        write_whole(path, put, suffix)
    except (OSError, RuntimeError) as error:
        # torch's writer trips over a failed write with an error of its own; what the disk said is its context
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise TrainingError(
            f"the checkpoint {path} could not be written ({cause.strerror or cause}): "
            "free disk space and start the study again, it goes on from the last checkpoint"
        ) from error


def _read(source: "Path | BinaryIO", path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(source, "cpu", weights_only=True)  # pyright: ignore[reportUnknownMemberType]
        return restored(state) if LAYOUT in state else state  # one that an earlier version wrote is as it is
    except Exception as error:  # a damaged file trips over whatever comes first
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrainingError(
            f"the checkpoint {path} cannot be read ({first}): restore it from a copy; where a new study cannot "
            "read its own, its state_dict must hold only tensors, numbers, strings, lists and dicts"
        ) from error
