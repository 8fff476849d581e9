import errno
import gc
import json
import os
import re
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import Schedule
from paceline.errors import JournalError
from paceline.study import (
    Created,
    Decided,
    Dropped,
    Event,
    Failure,
    Finished,
    Interval,
    Journal,
    Report,
    Study,
    because,
    load_known_runs,
    read_journal,
    save_known_runs,
    write_settings,
)
from paceline.study.events import to_json

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-3.jsonl"
FORMAT_2 = GOLDEN.with_name("journal-2.jsonl")
FORMAT_1 = GOLDEN.with_name("journal-1.jsonl")
FAMILY = GOLDEN.with_name("journal-1-family.jsonl")
SCHEDULE = Schedule([0.1, 0.05], [0, 10, 20], 100, "linear")
EVENTS: list[Event] = [
    Created({"lr": [1e-4, 1e-1], "steps": 100}),
    Decided(
        1, 0, (because("start", rates=[0.1, 0.05]),), {"proposals": 1, "ranking": [{"fork": 0, "value": 1.5}]}, 0.001
    ),
    Interval(0, None, 0, 10, Schedule.constant(0.1, 100), 1),
    Report(0, 0, 10, (5, 10), {"raw": (2.5, 2.25), "averaged": (2.6, 2.3)}),
    Interval(1, 0, 10, 20, SCHEDULE, 2, task=1),
    Report(1, 10, 15, (12, 15), {"raw": (3.0, float("nan"))}, Failure("not finite", step=15)),
    Interval(2, 0, 10, 20, SCHEDULE, 2),
    Report(2, 10, 12, (12,), {"raw": (3.0,)}, Failure("raised", "ValueError: bad batch", "train.py, line 12")),
    Dropped(0, 20, because("behind", value=2.25)),
    Finished(None, 100, None, "raw"),
]


def same(a: Event, b: Event) -> bool:
    return to_json(a) == to_json(b)


def test_the_golden_journal_is_read_and_written_the_same(tmp_path: Path) -> None:
    for path in (GOLDEN, FORMAT_2):
        events = read_journal(path)
        assert len(events) == len(EVENTS)
        assert all(same(a, b) for a, b in zip(events, EVENTS, strict=True))
    with Journal(tmp_path) as journal:
        for event in EVENTS:
            journal.append(event)
    assert (tmp_path / "journal.jsonl").read_bytes() == GOLDEN.read_bytes()


@pytest.mark.parametrize(("path", "gone"), [(FORMAT_1, 1), (FORMAT_2, 0)])
def test_a_journal_of_an_older_format_is_continued_in_the_present_one(path: Path, gone: int, tmp_path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    shutil.copy(path, tmp_path / "journal.jsonl")
    with Journal(tmp_path) as journal:
        assert len(journal.events) == len(lines) - gone  # format 1 has a line for a clone
        journal.append(EVENTS[-2])
    written = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert json.loads(written[-1])["v"] == 3
    assert json.loads(written[-1])["n"] == len(lines)
    assert same(read_journal(tmp_path / "journal.jsonl")[-1], EVENTS[-2])


def test_the_golden_journal_of_a_family_is_read(tmp_path: Path) -> None:
    events = read_journal(FAMILY)
    assert isinstance(events[0], Created)
    study = Study(tmp_path, events[0].settings, tuple(events))
    assert study.tasks == ("calm", "wild")
    assert list(study.answers) == ["calm", "wild"]
    assert set(study.best) == {"calm", "wild"}
    assert set(study.embedding) == {"calm", "log", "wild"}
    assert [trace.task for trace in study.traces()] == [study.tasks[interval.task] for interval in study.intervals]
    shutil.copy(FAMILY.parent / "known-1.jsonl", tmp_path / "known.jsonl")
    runs = load_known_runs(tmp_path, study.settings["known"]["digest"])
    assert [run.parent for run in runs] == [None, runs[0]]
    save_known_runs(tmp_path, runs)
    assert (tmp_path / "known.jsonl").read_bytes() == (FAMILY.parent / "known-1.jsonl").read_bytes()


@given(cut=st.integers(0, 10_000))
def test_cut_at_any_byte_it_reads_the_whole_lines_and_goes_on(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = GOLDEN.read_bytes()
    cut %= len(whole)
    (folder / "journal.jsonl").write_bytes(whole[:cut])
    torn = whole[:cut].rpartition(b"\n")[2]
    known = whole[:cut].count(b"\n")
    assert len(read_journal(folder / "journal.jsonl")) == known
    with Journal(folder) as journal:
        for event in EVENTS[known:]:
            journal.append(event)
    assert (folder / "journal.jsonl").read_bytes() == whole
    assert [path.read_bytes() for path in folder.glob("journal.cut-*")] == ([torn] if torn else [])


def test_a_line_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(GOLDEN.read_bytes().replace(b',"settings"', b'\r"settings"', 1))
    damaged = path.read_bytes()
    with pytest.raises(JournalError, match="line 1"):
        Journal(tmp_path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("path", [GOLDEN, FORMAT_2])
def test_what_a_crash_tore_is_kept_each_time(path: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "journal.jsonl").write_bytes(path.read_bytes() + b'{"v":%d' % number)
        Journal(tmp_path).close()
        assert (tmp_path / "journal.jsonl").read_bytes() == path.read_bytes()
        assert (tmp_path / f"journal.cut-{number}").read_bytes() == b'{"v":%d' % number


def test_every_flipped_bit_is_noticed_or_tears_the_last_line(tmp_path: Path) -> None:
    path, whole = tmp_path / "journal.jsonl", GOLDEN.read_bytes()
    last = 8 * (len(whole) - 1)  # the end of the last line
    for place in [*range(0, last, 23), *range(last, last + 8)]:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        if place >= last:
            assert len(read_journal(path)) == len(EVENTS) - 1
            continue
        with pytest.raises(JournalError):
            read_journal(path)


def test_a_line_without_a_checksum_after_one_with_it_is_refused(tmp_path: Path) -> None:
    older = FORMAT_2.read_bytes().splitlines(keepends=True)
    newer = GOLDEN.read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(older[:3] + newer[3:]))
    assert len(read_journal(tmp_path / "journal.jsonl")) == len(EVENTS)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(newer[:3] + older[3:]))
    with pytest.raises(JournalError, match="line 4 has format 2 after one of format 3"):
        read_journal(tmp_path / "journal.jsonl")


class Stop(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
@pytest.mark.parametrize("error", [Stop(), OSError(errno.ENOSPC, "No space left on device")])
def test_after_a_failed_write_the_next_one_finds_a_whole_journal(
    torn: bool, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync
    with Journal(tmp_path) as journal:
        journal.append(*EVENTS[:3])

        def fail(descriptor: int) -> None:
            monkeypatch.setattr(os, "fsync", sync)
            if torn:
                os.truncate(journal.path, journal.path.stat().st_size - 9)
            raise error

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(Stop if isinstance(error, Stop) else JournalError):
            journal.append(*EVENTS[3:5])
        assert len(journal.events) == journal.lines == 3
        journal.append(*EVENTS[3:])
    assert (tmp_path / "journal.jsonl").read_bytes() == GOLDEN.read_bytes()
    assert not list(tmp_path.glob("journal.cut-*"))


def test_what_cannot_be_taken_back_at_once_is_taken_back_before_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Journal(tmp_path) as journal:
        journal.append(*EVENTS[:3])
        monkeypatch.setattr(os, "fsync", fail)
        for _ in range(2):
            with pytest.raises(JournalError, match=r"could not be written \(Input/output error\): free disk space"):
                journal.append(*EVENTS[3:5])
        monkeypatch.setattr(os, "fsync", sync)
        journal.append(*EVENTS[3:])
    assert (tmp_path / "journal.jsonl").read_bytes() == GOLDEN.read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be moved there")
@pytest.mark.parametrize("action", ["delete", "move", "replace"])
def test_a_folder_that_goes_away_is_noticed_at_the_next_event(action: str, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    with Journal(folder) as journal:
        journal.append(EVENTS[0])
        folder.rename(tmp_path / "moved")
        if action == "delete":
            shutil.rmtree(tmp_path / "moved")
        if action == "replace":
            shutil.copytree(tmp_path / "moved", folder)
        with pytest.raises(JournalError, match=r"deleted, moved or replaced while the study ran: move it back and"):
            journal.append(EVENTS[1])
        if action == "move":
            (tmp_path / "moved").rename(folder)
            journal.append(EVENTS[1])
            assert len(read_journal(folder / "journal.jsonl")) == 2


def test_a_journal_that_another_program_writes_is_not_written(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(EVENTS[0])
        with journal.path.open("a") as file:
            file.write("x")
        with pytest.raises(JournalError, match=r"should have 94 bytes, got 95: another program wrote to it"):
            journal.append(EVENTS[1])


def edited(folder: Path, change) -> Path:
    lines = FORMAT_2.read_text().splitlines()
    change(lines)
    path = folder / "journal.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines.pop(2), "line 3 should be event 2, got 3: a line is missing or was added"),
        (lambda lines: lines.__setitem__(3, lines[3][:-5]), "line 4 is not JSON"),
        (lambda lines: lines.__setitem__(3, "17"), "line 4 is not an event"),
        (lambda lines: lines.__setitem__(3, lines[3].replace("observed", "obsrved")), "unknown event 'obsrved'"),
        (
            lambda lines: lines.__setitem__(3, lines[3].replace('"v":2', '"v":9')),
            "format 9, this version reads up to 3",
        ),
        (lambda lines: lines.__setitem__(3, lines[3].replace('"stop"', '"stpo"')), "lacks the field 'stop'"),
        (lambda lines: lines.__setitem__(3, lines[3].replace('"v":2', '"v":"2"')), "line 4 has no whole number as its"),
        (
            lambda lines: lines.__setitem__(3, re.sub('"values":{[^}]*}', '"values":[1.0]', lines[3])),
            "'values' must be an object .*, got .1.0.",
        ),
    ],
)
def test_an_edited_journal_is_refused_with_the_line(change, message: str, tmp_path: Path) -> None:
    path = edited(tmp_path, change)
    with pytest.raises(JournalError, match=message):
        read_journal(path)
    with pytest.raises(JournalError, match=message):
        Journal(tmp_path)


def test_another_thread_may_close_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    closer = threading.Thread(target=journal.close)
    closer.start()
    closer.join()
    Journal(tmp_path).close()


def test_a_journal_that_cannot_be_opened_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("17\n")
    with pytest.raises(JournalError):
        Journal(tmp_path)
    (tmp_path / "journal.jsonl").unlink()
    Journal(tmp_path).close()


@pytest.mark.parametrize("is_sound", [True, False])
def test_garbage_is_collected_again_once_a_journal_was_read(is_sound: bool, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(GOLDEN.read_bytes() if is_sound else b"17\n")
    with nullcontext() if is_sound else pytest.raises(JournalError):
        read_journal(tmp_path / "journal.jsonl")
    assert gc.isenabled()


def test_a_study_is_read_without_being_touched(tmp_path: Path) -> None:
    write_settings(tmp_path, {"steps": 100}, seed=3)
    with Journal(tmp_path) as journal:
        for event in EVENTS:
            journal.append(event)
        study = Study.open(tmp_path)  # also while it is being written
    assert study.settings == {"steps": 100}
    assert study.finished is not None
    assert (len(study.decisions), len(study.intervals), len(study.reports)) == (1, 3, 3)


def test_what_is_no_study_or_a_newer_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"is not a study: expected a folder with study\.json"):
        Study.open(tmp_path)
    (tmp_path / "study.json").write_text('{"format": 7, "paceline": "9.0"}')
    with pytest.raises(JournalError, match=r"written by paceline 9.0 in format 7.*install a newer paceline"):
        Study.open(tmp_path)
    for broken in ("{", '{"format": 1}', '{"format": 1, "settings": null}', "[]"):
        (tmp_path / "study.json").write_text(broken)
        with pytest.raises(JournalError, match="cannot be read"):
            Study.open(tmp_path)
