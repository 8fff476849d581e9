import errno
import os
from pathlib import Path

import pytest

from paceline.errors import InputError, JournalError
from paceline.study.regular_files import (
    open_regular_file,
    read_regular_file,
    read_regular_lines,
    refuse_links,
    refuse_other_files,
    writing,
)


def test_a_file_is_read_and_a_missing_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert read_regular_file(tmp_path / "a") == b"text"
    assert read_regular_file(tmp_path / "b") is None
    assert read_regular_file(tmp_path / "a" / "b") is None


@pytest.mark.skipif(os.name != "posix", reason="there are no such files")
def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name, message in {
        "pipe": "should be a file, got a pipe",
        "folder": "should be a file, got a folder",
        "loop": "cannot be opened",
        "endless": "should be a file, got a device",
    }.items():
        with pytest.raises(JournalError, match=message):
            read_regular_file(tmp_path / name)


def test_an_open_file_can_be_read_from_any_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one two")
    file = open_regular_file(tmp_path / "a")
    assert file is not None
    with file:
        file.seek(4)
        assert file.read(3) == b"two"
    assert open_regular_file(tmp_path / "b") is None


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    for read in (read_regular_file, lambda path, most: list(read_regular_lines(path, most))):
        with pytest.raises(JournalError, match="should have at most 10 bytes, got 11"):
            read(tmp_path / "a", 10)


def test_lines_end_at_a_line_feed_only_and_are_those_of_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\rand more\nthree")
    lines = read_regular_lines(tmp_path / "a")
    assert next(lines) == b"one\r\n"
    with (tmp_path / "a").open("ab") as file:
        file.write(b" and what came later\nfour\n")
    assert list(lines) == [b"two\rand more\n", b"three"]
    assert list(read_regular_lines(tmp_path / "b")) == []


@pytest.mark.parametrize("name", ["journal.jsonl", "lock", "checkpoints", "study.json.tmp"])
def test_a_study_whose_files_are_links_is_not_written(name: str, tmp_path: Path) -> None:
    refuse_links(tmp_path)
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="should lie in the study's folder, got a link"):
        refuse_links(tmp_path)


def test_a_disk_that_is_full_says_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(JournalError, match=r"study.json could not be written \(No space left on device\): free disk"),
        writing(tmp_path / "study.json"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_new_study_needs_a_folder_that_holds_nothing_else(tmp_path: Path) -> None:
    refuse_other_files(tmp_path / "not there")
    refuse_other_files(tmp_path)
    for name in ("lock", "study.json.tmp", "known.jsonl", "storage.json", ".gitignore"):
        (tmp_path / name).touch()
    (tmp_path / "checkpoints").mkdir()
    refuse_other_files(tmp_path)  # of a start that was cut off
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"an empty folder, got .*, which holds notes.txt: choose another folder"):
        refuse_other_files(tmp_path)
    (tmp_path / "study.json").touch()
    refuse_other_files(tmp_path)  # a study, with notes of the user's


def test_checkpoints_of_others_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "best.ckpt").touch()
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(InputError, match="which holds checkpoints: choose another folder"):
        refuse_other_files(tmp_path)
    for name in "abcd":
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="which holds a, b, c and 2 more: choose another folder"):
        refuse_other_files(tmp_path)
