from pathlib import Path

import pytest

from paceline.files import write_atomically


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
