"""Checkpoints: whole files or none, and nothing in them that could run code."""

import io
import os
from pathlib import Path
from typing import Any

import torch

from paceline.errors import TrainingError


def save_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Write a state under a temporary name, wait until it is on disk, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(state, file)  # pyright: ignore[reportUnknownMemberType]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise TrainingError(
            f"the checkpoint {path} could not be written ({error.strerror or error}): "
            "free disk space and start the study again, it goes on from the last checkpoint"
        ) from error


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a state; only tensors and plain data are accepted."""
    if not path.exists():
        raise TrainingError(
            f"the checkpoint {path} is missing: restore it from a copy, or start a new study; "
            "the journal keeps what was learnt"
        )
    state: dict[str, Any] = torch.load(io.BytesIO(path.read_bytes()), weights_only=True)  # pyright: ignore
    return state
