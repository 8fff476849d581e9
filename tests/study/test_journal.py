import errno
import json
import multiprocessing
import re
import shutil
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import Schedule
from paceline.errors import InputError, JournalError, StudyLockedError
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

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-2.jsonl"
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
    events = read_journal(GOLDEN)
    assert len(events) == len(EVENTS)
    assert all(same(a, b) for a, b in zip(events, EVENTS, strict=True))
    with Journal(tmp_path) as journal:
        for event in EVENTS:
            journal.append(event)
    assert (tmp_path / "journal.jsonl").read_bytes() == GOLDEN.read_bytes()


def test_a_journal_of_format_1_is_continued_in_the_present_format(tmp_path: Path) -> None:
    lines = FORMAT_1.read_bytes().splitlines(keepends=True)
    shutil.copy(FORMAT_1, tmp_path / "journal.jsonl")
    with Journal(tmp_path) as journal:
        assert len(journal.events) == len(lines) - 1  # it has no line for a clone any more
        journal.append(EVENTS[-2])
    written = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert json.loads(written[-1])["v"] == 2
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
    known = whole[:cut].count(b"\n")
    assert len(read_journal(folder / "journal.jsonl")) == known
    with Journal(folder) as journal:
        for event in EVENTS[known:]:
            journal.append(event)
    assert (folder / "journal.jsonl").read_bytes() == whole


def edited(folder: Path, change) -> Path:
    lines = GOLDEN.read_text().splitlines()
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
            "format 9, this version reads up to 2",
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


def _try_to_write(folder: str, answer: "multiprocessing.Queue[str]") -> None:
    try:
        Journal(Path(folder)).close()
        answer.put("opened")
    except StudyLockedError as error:
        answer.put(str(error))


def test_a_second_process_is_refused_while_the_first_writes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    with Journal(tmp_path):
        process = context.Process(target=_try_to_write, args=(str(tmp_path), answer))
        process.start()
        assert "is being written by another process: wait for it, stop it" in answer.get(timeout=60)
        process.join()
    with Journal(tmp_path):
        pass


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(StudyLockedError, match="choose another study folder"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def _hold_the_lock(folder: str, ready: "multiprocessing.Queue[bool]") -> None:
    journal = Journal(Path(folder))
    ready.put(True)
    time.sleep(600)
    journal.close()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=_hold_the_lock, args=(str(tmp_path), ready))
    process.start()
    ready.get(timeout=60)
    with pytest.raises(StudyLockedError):
        Journal(tmp_path)
    process.kill()
    process.join()
    assert (tmp_path / "lock").exists()  # the file stays, the lock does not
    Journal(tmp_path).close()


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


def test_a_disk_without_file_locks_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(file: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_lock)
    with pytest.raises(InputError, match=r"lock that can be taken, got .*on a disk that supports file locks"):
        Journal(tmp_path)


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
