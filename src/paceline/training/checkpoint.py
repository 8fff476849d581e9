"""Checkpoint files: complete or absent, and safe to load, since reading one runs no code."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from paceline.errors import TrainingError
from paceline.files import write_atomically
from paceline.training.state_layout import LAYOUT, flatten_state, restore_state


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Write a state to a temporary file, wait until it is on disk, and rename it."""
    write_checkpoint(path, lambda file: torch.save(flatten_state(state), file))  # pyright: ignore[reportUnknownMemberType]


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a state onto the CPU. Only tensors and plain data are accepted."""
    return _read(require_checkpoint(path), path)


def pack_checkpoint(state: dict[str, Any]) -> memoryview:
    """The bytes of a state's checkpoint file, to be sent to another process."""
    file = io.BytesIO()
    torch.save(flatten_state(state), file)  # pyright: ignore[reportUnknownMemberType]
    return file.getbuffer()


def unpack_checkpoint(content: Any, path: Path) -> dict[str, Any]:
    """The state in the bytes of a checkpoint file; `path` is its name in error messages."""
    return _read(io.BytesIO(content), path)


def require_checkpoint(path: Path) -> Path:
    """The path itself if the checkpoint exists, else an error with advice."""
    if not path.exists():
        raise TrainingError(
            f"the checkpoint {path} is missing: restore it from a copy, or start a new study; the journal keeps "
            "everything that was observed"
        )
    return path


def write_checkpoint(path: Path, write: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Call `write` with a file that becomes the checkpoint only once it is complete."""
    try:
        write_atomically(path, write, suffix)
    except (OSError, RuntimeError) as error:
        # after a failed write torch's writer raises an error of its own; the disk's error is the context of that one
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise TrainingError(
            f"the checkpoint {path} could not be written ({cause.strerror or cause}): "
            "free disk space and start the study again, it continues from the last checkpoint"
        ) from error


def _read(source: "Path | io.BytesIO", path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(source, "cpu", weights_only=True)  # pyright: ignore[reportUnknownMemberType]
        return restore_state(state) if LAYOUT in state else state  # earlier versions wrote the state as it is
    except Exception as error:  # a damaged file can raise almost anything
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrainingError(
            f"the checkpoint {path} cannot be read ({first}): restore it from a copy; if a new study cannot read its "
            "own checkpoints, its state_dict must hold only tensors, arrays, numbers, strings, lists and dicts"
        ) from error
