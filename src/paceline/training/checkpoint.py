"""Checkpoint files: complete or absent, and safe to load, since reading one runs no code."""

import io
import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

from paceline.errors import TrainingError
from paceline.files import write_atomically
from paceline.training.checkpoint_seal import IN_PARALLEL, SealedFile, check_seal
from paceline.training.state_layout import LAYOUT, flatten_state, restore_state

FOLDER = "checkpoints"  # of a study; the study's own folder is not made here


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Write a state to a temporary file, wait until it is on disk, and rename it."""
    write_checkpoint(path, lambda file: _write(state, file, path))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a state onto the CPU. Only tensors and plain data are accepted, and only what was written."""
    with _reading(path), require_checkpoint(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size < IN_PARALLEL:
            check_seal(file, path)
            return _restored(_load(path))
        with ThreadPoolExecutor(1) as thread:
            check = thread.submit(check_seal, file, path)
            try:
                state = _load(path)  # opens the file again, since torch and the check each move in theirs
            finally:
                check.result()  # says more than what torch raises
        return _restored(state)


def pack_checkpoint(state: dict[str, Any], path: Path) -> memoryview:
    """The bytes of a state's checkpoint file, to be sent to another process; `path` is where it will lie."""
    file = io.BytesIO()
    _write(state, file, path)
    return file.getbuffer()


def unpack_checkpoint(content: Any, path: Path) -> dict[str, Any]:
    """The state in the bytes of a checkpoint file; `path` is its name in error messages."""
    file = io.BytesIO(content)
    with _reading(path):
        check_seal(file, path)
        file.seek(0)
        return _restored(_load(file))


def require_checkpoint(path: Path) -> Path:
    """The path itself if the checkpoint exists, else an error with advice."""
    _require_study(path)
    if not path.exists():
        raise TrainingError(
            f"the checkpoint {path} is missing: restore it from a copy, or start a new study; the journal keeps "
            "everything that was observed"
        )
    if not path.is_file():  # a pipe would be waited for
        raise TrainingError(f"the checkpoint {path} should be a file, got something else: restore it from a copy")
    return path


def write_checkpoint(path: Path, write: Callable[[BinaryIO], object], suffix: str = ".tmp") -> None:
    """Call `write` with a file that becomes the checkpoint only once it is complete."""
    _require_study(path)
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


def _require_study(path: Path) -> None:
    """Refuse to go on if the folder of the study that a checkpoint belongs to has gone."""
    study = path.parent.parent
    if path.parent.name == FOLDER and not study.exists():
        raise TrainingError(
            f"{study} was deleted or moved while the study ran: move it back and start the study again, or choose "
            "another study folder"
        )


def _write(state: dict[str, Any], file: "BinaryIO | io.BytesIO", path: Path) -> None:
    sealed = SealedFile(file, path)
    torch.save(flatten_state(state), sealed)  # pyright: ignore
    sealed.seal()


def _load(source: "Path | io.BytesIO") -> dict[str, Any]:
    return torch.load(source, "cpu", weights_only=True)  # pyright: ignore[reportUnknownMemberType]


def _restored(state: dict[str, Any]) -> dict[str, Any]:
    return restore_state(state) if LAYOUT in state else state  # earlier versions wrote the state as it is


@contextmanager
def _reading(path: Path) -> Generator[None]:
    try:
        yield
    except TrainingError:
        raise
    except Exception as error:  # a damaged file can raise almost anything
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrainingError(
            f"the checkpoint {path} cannot be read ({first}): restore it from a copy; if a new study cannot read its "
            "own checkpoints, its state_dict must hold only tensors, arrays, numbers, strings, lists and dicts"
        ) from error
