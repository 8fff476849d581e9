"""A study that is read as it grows."""

import json
import threading
from pathlib import Path

import pytest

from paceline.errors import JournalError
from paceline.study import Journal
from paceline.study.journal_line import write_line
from paceline.views.projection import study_view
from paceline.views.web import study_reader
from paceline.views.web.study_reader import StudyReader
from tests.forged_lines import forged
from tests.views.studies import EVENTS
from tests.views.web.studies import append, write


def test_a_study_is_the_same_followed_line_by_line_or_read_at_once(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path, []))
    for count in range(1, len(EVENTS) + 1):
        append(tmp_path, EVENTS[count - 1 : count])
        assert reader.has_changed()
        reader.refresh()
        assert not reader.has_changed()
        assert reader.view() == study_view(EVENTS[:count])


def test_a_torn_line_is_waited_for_and_its_removal_goes_unnoticed(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path, EVENTS[:5]))
    reader.refresh()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(write_line(5, EVENTS[5])[:20])
    reader.refresh()
    assert reader.revision == "0.5"
    append(tmp_path, EVENTS[5:7])  # the writer removes what was torn
    reader.refresh()
    assert reader.view() == study_view(EVENTS[:7])


def test_a_study_that_began_anew_is_read_from_its_start(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path))
    reader.refresh()
    (tmp_path / "journal.jsonl").unlink()
    append(tmp_path, EVENTS[:4])
    reader.refresh()
    assert reader.view() == study_view(EVENTS[:4])
    assert reader.revision == "1.4"


def test_a_study_that_began_anew_and_grew_beyond_what_was_read(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path, EVENTS[:4]))
    reader.refresh()
    path = tmp_path / "journal.jsonl"
    other = json.loads(write_line(0, EVENTS[0]).replace(b'"seed":4', b'"seed":40000'))
    path.write_bytes(forged(other))  # the same file, other lines
    append(tmp_path, EVENTS[1:8])
    reader.refresh()
    assert len(reader.view().forks) == 2
    assert reader.settings()["seed"] == 40000


def test_a_damaged_journal_says_so_and_heals(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path, EVENTS[:4]))
    path = tmp_path / "journal.jsonl"
    sound = path.read_bytes()
    lines = sound.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    reader.refresh()
    assert "should be event 2, got 3" in reader.problem
    with pytest.raises(JournalError, match="a line is missing"):
        reader.view()
    path.unlink()
    path.write_bytes(sound)
    reader.refresh()
    assert reader.view() == study_view(EVENTS[:4])


def test_a_running_study_is_not_disturbed(tmp_path: Path) -> None:
    write(tmp_path, EVENTS[:4])
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reader = StudyReader(tmp_path)
    with Journal(tmp_path) as journal:  # holds the lock
        reader.refresh()
        assert reader.view() == study_view(EVENTS[:4])
        journal.append(EVENTS[4])
        reader.refresh()
        assert reader.view() == study_view(EVENTS[:5])
    with Journal(tmp_path):  # and following has not taken it
        reader.refresh()
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert set(before) == set(after)
    assert before["study.json"] == after["study.json"]


def test_a_look_opens_no_file_and_a_refresh_reads_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = StudyReader(write(tmp_path, EVENTS[:4]))
    reader.refresh()
    version, written = reader.version, reader.written
    monkeypatch.setattr(reader, "_read_lines", None)
    assert not reader.has_changed()
    reader.refresh()
    assert (reader.version, reader.written, reader.size) == (
        version,
        written,
        (tmp_path / "journal.jsonl").stat().st_size,
    )
    monkeypatch.undo()
    append(tmp_path, EVENTS[4:5])
    assert reader.has_changed()
    assert reader.version != version


def test_a_journal_that_is_a_link_is_none(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside")
    folder = write(tmp_path / "first", [])
    (folder / "journal.jsonl").unlink()
    (folder / "journal.jsonl").symlink_to(outside / "journal.jsonl")
    reader = StudyReader(folder)
    reader.refresh()
    assert (reader.revision, reader.size, reader.problem) == ("0.0", 0, "")


def test_a_request_does_not_wait_long_for_another_that_reads(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path))
    is_held, is_done = threading.Event(), threading.Event()

    def read() -> None:
        with reader._lock:  # as a thread does while it reads a long journal
            is_held.set()
            is_done.wait(20)

    thread = threading.Thread(target=read)
    thread.start()
    is_held.wait(20)
    assert not reader.refresh(patience=0.01)
    is_done.set()
    thread.join()
    assert reader.refresh(patience=0.01)
    assert reader.share_read == 1.0


def test_a_long_journal_that_is_damaged_is_not_read_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_reader, "LONG_READ", 0.0)
    monkeypatch.setattr(study_reader, "RETRY_FACTOR", 1e9)
    reader = StudyReader(write(tmp_path, EVENTS[:5]))
    reader.refresh()
    path = tmp_path / "journal.jsonl"
    sound = path.read_bytes()
    path.write_bytes(sound + b"nonsense\n")
    reader.refresh()
    assert "not an event" in reader.problem
    path.write_bytes(sound)
    reader.refresh()
    assert reader.problem
    monkeypatch.setattr(reader, "_retry_at", 0.0)
    reader.refresh()
    assert not reader.problem
