"""Checkpoints outside of the study's folder: on a shared mount, or at any URL that fsspec can write to.

Each study has a folder of its own there, with a random name that is kept in the study's folder. So two studies never
share one, and a continued study finds its checkpoints.
"""

import json
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec as _fsspec  # pyright: ignore[reportMissingTypeStubs]
from fsspec.implementations.local import LocalFileSystem  # pyright: ignore[reportMissingTypeStubs]

from paceline.errors import InputError, JournalError, TrainingError
from paceline.files import write_atomically
from paceline.study import Checkpoints, state_named
from paceline.training import write_checkpoint

fsspec: Any = _fsspec
COPY_BYTES = 2**22  # at a time


@dataclass(frozen=True, slots=True)
class Storage:
    """The checkpoints of one study under a URL. Each is complete or absent."""

    url: str

    def write(self, name: str, content: Any) -> None:
        """Save a checkpoint; it is safe when this returns."""
        fs, root = self._open()
        if isinstance(fs, LocalFileSystem):
            # two workers may write the same checkpoint, so each uses a temporary name of its own
            write_checkpoint(Path(root) / name, lambda file: file.write(content), f".{secrets.token_hex(4)}.tmp")
            return
        try:
            fs.makedirs(root, exist_ok=True)
            with fs.open(f"{root}/{name}", "wb") as file:  # an object store shows a file only when it is closed
                file.write(memoryview(content))
        except Exception as error:  # all forks would fail, not this one, so the study stops
            raise self._error(name, "written", error) from None

    def read(self, name: str) -> bytes:
        """The content of a checkpoint."""
        fs, root = self._open()
        try:
            return fs.cat_file(f"{root}/{name}")
        except Exception as error:
            raise self._error(name, "read", error) from None

    def exists(self, name: str) -> bool:
        """Whether a checkpoint is there."""
        fs, root = self._open()
        try:
            fs.invalidate_cache()
            return bool(fs.exists(f"{root}/{name}"))
        except Exception as error:
            raise self._error(name, "looked for", error) from None

    def keep_only(self, names: set[str], is_named: Callable[[int, int], bool] = lambda fork, step: True) -> None:
        """Delete all other checkpoints. A temporary file of one of these names may be in use, and stays.

        Args:
            names: of the checkpoints that are needed.
            is_named: whether the journal names a state, by fork and step; no other file is deleted, and no link.
        """
        fs, root = self._open()
        try:
            fs.invalidate_cache()
            paths = [str(path) for path in fs.ls(root, detail=False)] if fs.exists(root) else []
            for path in paths:
                name = path.rsplit("/", 1)[-1]
                state = state_named(name)
                if state is None or not is_named(*state) or _is_link(fs, path):
                    continue
                if not any(name == needed or name.startswith(f"{needed}.") for needed in names):
                    with suppress(FileNotFoundError):  # a temporary file that has just been renamed
                        fs.rm_file(path)
        except Exception as error:
            raise self._error("that nothing begins from", "deleted", error) from None

    def discard(self, names: set[str]) -> None:
        """Delete these checkpoints, if they are there."""
        fs, root = self._open()
        for name in sorted(names):
            try:
                with suppress(FileNotFoundError):
                    fs.rm_file(f"{root}/{name}")
            except Exception as error:
                raise self._error(name, "deleted", error) from None

    def fetch(self, name: str, path: Path) -> None:
        """Copy a checkpoint into a file, piece by piece."""
        fs, root = self._open()
        try:
            with fs.open(f"{root}/{name}", "rb") as source:
                write_checkpoint(path, lambda file: shutil.copyfileobj(source, file, COPY_BYTES))
        except TrainingError:  # of the study's own disk
            raise
        except Exception as error:
            raise self._error(name, "fetched", error) from None

    def _open(self) -> tuple[Any, str]:
        fs, root = fsspec.url_to_fs(self.url)
        return fs, str(root).rstrip("/")

    def _error(self, name: str, action: str, error: Exception) -> TrainingError:
        return TrainingError(
            f"the checkpoint {name} could not be {action} at {self.url} ({type(error).__name__}: {error}): "
            "check the storage and start the study again, it continues from the last checkpoint"
        )


def _is_link(fs: Any, path: str) -> bool:
    return isinstance(fs, LocalFileSystem) and Path(path).is_symlink()


def study_storage(url: str | None, folder: Path) -> Storage | None:
    """The storage of a study, the same one each time it is continued; None if checkpoints are in the study's folder."""
    file = folder / "storage.json"
    record = _read_record(file) if file.exists() else None
    has_begun = record is not None or any(Checkpoints.of_study(folder).files())
    present_url = record["storage"] if record is not None else None
    if has_begun and url != present_url:
        raise InputError(
            f"the study in {folder} keeps its checkpoints in {present_url or 'its folder'}, got storage={url!r}: "
            + (f"pass storage={present_url!r}" if present_url else "leave storage out, or begin a new study")
        )
    if url is None:
        return None
    if record is None:
        record = {"storage": url, "folder": secrets.token_hex(8)}
        text = json.dumps(record) + "\n"
        write_atomically(file, lambda stream: stream.write(text.encode()))
    return Storage(f"{url.rstrip('/')}/{record['folder']}")


def _read_record(file: Path) -> dict[str, str]:
    """What storage.json says. Its folder is a random name, so nothing outside of the storage is written or deleted."""
    try:
        record = json.loads(file.read_text())
        if isinstance(record["storage"], str) and re.fullmatch(r"[0-9a-f]{16}", record["folder"]):
            return record
    except (ValueError, LookupError, TypeError):
        pass
    raise JournalError(f"{file} does not name a storage and a folder in it: it was edited or damaged, restore it")


def check_url(url: str) -> str:
    """A URL that fsspec knows; a path is made absolute."""
    try:
        fs, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"storage={url!r} cannot be used: {error}; expected a folder on a mount that all nodes share, or a URL "
            "such as s3://bucket/folder, with what fsspec needs for it installed on all nodes"
        ) from error
    return str(root) if isinstance(fs, LocalFileSystem) else url
