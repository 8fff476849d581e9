"""Checkpoints away from the study's folder: on a shared mount, or wherever fsspec can write.

Each study has a folder of its own there, under a random name that is kept in the study's folder: two studies never
meet, and one that is continued finds its checkpoints again.
"""

import json
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec as _fsspec  # pyright: ignore[reportMissingTypeStubs]
from fsspec.implementations.local import LocalFileSystem  # pyright: ignore[reportMissingTypeStubs]

from paceline.errors import InputError, TrainingError
from paceline.files import write_whole
from paceline.training import write_checkpoint

fsspec: Any = _fsspec


@dataclass(frozen=True, slots=True)
class Storage:
    """The checkpoints of one study under a URL; each is there in full or not at all."""

    url: str

    def write(self, name: str, content: Any) -> None:
        """Keep a checkpoint; it is safe when this returns."""
        fs, root = self._opened()
        if isinstance(fs, LocalFileSystem):  # two workers may write the same one: each under a name of its own
            write_checkpoint(Path(root) / name, lambda file: file.write(content), f".{secrets.token_hex(4)}.tmp")
            return
        try:
            fs.makedirs(root, exist_ok=True)
            with fs.open(f"{root}/{name}", "wb") as file:  # object stores show a file when it is closed
                file.write(memoryview(content))
        except Exception as error:  # no fault of this fork: all of them would fail, and the study would be lost
            raise self._trouble(name, "written", error) from None

    def read(self, name: str) -> bytes:
        """The content of a checkpoint."""
        fs, root = self._opened()
        try:
            return fs.cat_file(f"{root}/{name}")
        except Exception as error:
            raise self._trouble(name, "read", error) from None

    def exists(self, name: str) -> bool:
        """Whether a checkpoint is there."""
        fs, root = self._opened()
        try:
            fs.invalidate_cache()
            return bool(fs.exists(f"{root}/{name}"))
        except Exception as error:
            raise self._trouble(name, "looked for", error) from None

    def keep_only(self, names: set[str]) -> None:
        """Delete all others; what is being written under one of these names stays."""
        fs, root = self._opened()
        try:
            fs.invalidate_cache()
            found = [str(path) for path in fs.ls(root, detail=False)] if fs.exists(root) else []
            for path in found:
                name = path.rsplit("/", 1)[-1]
                if not any(name == kept or name.startswith(f"{kept}.") for kept in names):
                    with suppress(FileNotFoundError):  # a temporary one that was renamed just now
                        fs.rm_file(path)
        except Exception as error:
            raise self._trouble("that nothing begins from", "deleted", error) from None

    def fetch(self, name: str, path: Path) -> None:
        """Copy a checkpoint into a file, piece by piece."""
        fs, root = self._opened()
        try:
            with fs.open(f"{root}/{name}", "rb") as source:
                write_checkpoint(path, lambda file: shutil.copyfileobj(source, file, 2**22))
        except TrainingError:  # of the study's own disk
            raise
        except Exception as error:
            raise self._trouble(name, "fetched", error) from None

    def _opened(self) -> tuple[Any, str]:
        fs, root = fsspec.url_to_fs(self.url)
        return fs, str(root).rstrip("/")

    def _trouble(self, name: str, what: str, error: Exception) -> TrainingError:
        return TrainingError(
            f"the checkpoint {name} could not be {what} at {self.url} ({type(error).__name__}: {error}): "
            "check the storage and start the study again, it goes on from the last checkpoint"
        )


def study_storage(url: str | None, folder: Path) -> Storage | None:
    """Where a study's checkpoints are kept, the same place whenever it is continued; None is the study's folder."""
    note = folder / "storage.json"
    known = json.loads(note.read_text()) if note.exists() else None
    begun = known is not None or any((folder / "checkpoints").glob("*.pt"))
    before = known["storage"] if known is not None else None
    if begun and url != before:
        raise InputError(
            f"the study in {folder} keeps its checkpoints in {before or 'its folder'}, got storage={url!r}: "
            + (f"pass storage={before!r}" if before else "leave storage out, or begin a new study")
        )
    if url is None:
        return None
    if known is None:
        known = {"storage": url, "folder": secrets.token_hex(8)}
        text = json.dumps(known) + "\n"
        write_whole(note, lambda file: file.write(text.encode()))
    return Storage(f"{url.rstrip('/')}/{known['folder']}")


def checked_url(url: str) -> str:
    """A URL that fsspec knows, absolute; or what is missing."""
    try:
        fs, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"storage={url!r} cannot be used: {error}; expected a folder on a mount that all nodes share, or a URL "
            "such as s3://bucket/folder, with what fsspec needs for it installed on all nodes"
        ) from error
    return str(root) if isinstance(fs, LocalFileSystem) else url
