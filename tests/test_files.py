import errno
import os
from pathlib import Path

import pytest

from paceline.files import sync_folder, write_atomically


def test_a_file_and_the_folders_above_it_are_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.txt"
    write_atomically(path, lambda file: file.write(b"all of it"))
    assert path.read_bytes() == b"all of it"
    assert [file.name for file in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("suffix", [".tmp", ".partial"])
def test_until_it_is_complete_it_has_another_name(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"the old one")

    def write(file) -> None:
        file.write(b"the new one")
        assert path.read_bytes() == b"the old one"
        assert (tmp_path / f"file.txt{suffix}").exists()

    write_atomically(path, write, suffix)
    assert path.read_bytes() == b"the new one"


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_bytes(b"not ours")
    (tmp_path / "file.txt.tmp").symlink_to(tmp_path / "elsewhere.txt")
    write_atomically(tmp_path / "file.txt", lambda file: file.write(b"all of it"))
    assert (tmp_path / "elsewhere.txt").read_bytes() == b"not ours"
    assert (tmp_path / "file.txt").read_bytes() == b"all of it"


@pytest.mark.skipif(os.name != "posix", reason="folders are not synced there")
def test_names_are_on_disk_when_a_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, sync, path = list[str](), os.fsync, tmp_path / "new" / "folder" / "file.txt"

    def record(descriptor: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    write_atomically(path, lambda file: file.write(b"x"))
    assert synced == [".", "new", "new/folder/file.txt.tmp", "new/folder"]


def test_a_disk_that_cannot_sync_folders_is_fine_and_one_that_fails_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int) -> None:
        def fsync(descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    fail(errno.EINVAL)
    sync_folder(tmp_path)
    fail(errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        sync_folder(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"the old one")

    def write(file) -> None:
        file.write(b"half of")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(path, write)
    assert path.read_bytes() == b"the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]
