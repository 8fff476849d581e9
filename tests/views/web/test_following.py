"""A journal is read as it grows: each whole line once, whatever its writer does."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import JournalError
from paceline.study import Event, Journal
from paceline.study.events import to_json
from paceline.study.journal import write_line
from paceline.study.state import head_of
from paceline.views.study_view import study_view
from paceline.views.web.journal_tail import Tail, read_head
from paceline.views.web.study_reader import StudyReader
from tests.views.studies import EVENTS
from tests.views.web.studies import append, write


@given(cuts=st.lists(st.integers(0, 300), max_size=8))
def test_lines_come_once_and_whole_however_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "journal.jsonl"
    content = b"".join(b"%d " % i * (i % 7) + b"\n" for i in range(40))
    tail, seen, at = Tail(path), list[bytes](), 0
    assert list(tail.lines()) == []
    for end in [*sorted(cuts), len(content)]:
        with path.open("ab") as file:
            file.write(content[at:end])
        at = max(at, end)
        fresh = list(tail.lines())
        assert all(content[offset : offset + len(line)] == line for offset, line in fresh)
        seen += [line for _, line in fresh]
        assert b"".join(seen) == content[: content[:at].rfind(b"\n") + 1]
    assert b"".join(seen) == content


def test_lines_longer_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.views.web.journal_tail.CHUNK", 7)
    (tmp_path / "j").write_bytes(b"a" * 30 + b"\nb\n\n" + b"c" * 9)
    assert [line for _, line in Tail(tmp_path / "j").lines()] == [b"a" * 30 + b"\n", b"b\n", b"\n"]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_the_front_of_a_line_says_what_the_whole_does(event: Event) -> None:
    line = write_line(7, event)
    number, head = read_head(line)
    assert number == 7
    assert head == read_head(b" " + line)[1]  # not as we write it: parsed
    data = to_json(event)
    assert head.kind == data["event"]
    for name in ("parent", "start"):
        assert getattr(head, name) == data.get(name)
    if head.kind != "decided":
        assert (head.fork, head.stop) == (data.get("fork"), data.get("stop", data.get("step")))
    for name, value in head_of(event)._asdict().items():
        assert value is None or getattr(head, name) == value, "the state must see the same of a line as of an event"


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b'{"v":1,"n":0,"event":"danced"}\n', b'{"n":0}\n'])
def test_what_is_no_event_says_so(line: bytes) -> None:
    with pytest.raises(JournalError, match=r"no event|unknown event"):
        read_head(line)


def test_a_study_is_the_same_followed_line_by_line_or_read_at_once(tmp_path: Path) -> None:
    followed = StudyReader(write(tmp_path, []))
    for count in range(1, len(EVENTS) + 1):
        append(tmp_path, EVENTS[count - 1 : count])
        assert followed.grown()
        followed.refresh()
        assert not followed.grown()
        assert followed.view() == study_view(EVENTS[:count])


def test_a_torn_line_is_waited_for_and_its_removal_goes_unnoticed(tmp_path: Path) -> None:
    followed = StudyReader(write(tmp_path, EVENTS[:5]))
    followed.refresh()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(write_line(5, EVENTS[5])[:20])
    followed.refresh()
    assert followed.revision == "0.5"
    append(tmp_path, EVENTS[5:7])  # the writer removes what was torn
    followed.refresh()
    assert followed.view() == study_view(EVENTS[:7])


def test_a_study_that_began_anew_is_read_from_its_start(tmp_path: Path) -> None:
    followed = StudyReader(write(tmp_path))
    followed.refresh()
    (tmp_path / "journal.jsonl").unlink()
    append(tmp_path, EVENTS[:4])
    followed.refresh()
    assert followed.view() == study_view(EVENTS[:4])
    assert followed.revision == "1.4"


def test_a_study_that_began_anew_and_grew_beyond_what_was_read(tmp_path: Path) -> None:
    followed = StudyReader(write(tmp_path, EVENTS[:4]))
    followed.refresh()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(write_line(0, EVENTS[0]).replace(b'"seed":4', b'"seed":40000'))  # the same file, other lines
    append(tmp_path, EVENTS[1:8])
    followed.refresh()
    assert len(followed.view().forks) == 2
    assert followed.settings()["seed"] == 40000


def test_a_damaged_journal_says_so_and_heals(tmp_path: Path) -> None:
    followed = StudyReader(write(tmp_path, EVENTS[:4]))
    path = tmp_path / "journal.jsonl"
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b'"n":2', b'"n":9'))
    followed.refresh()
    assert "should be event 2, got 9" in followed.problem
    with pytest.raises(JournalError, match="a line is missing"):
        followed.view()
    path.unlink()
    path.write_bytes(sound)
    followed.refresh()
    assert followed.view() == study_view(EVENTS[:4])


def test_a_running_study_is_not_disturbed(tmp_path: Path) -> None:
    write(tmp_path, EVENTS[:4])
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    followed = StudyReader(tmp_path)
    with Journal(tmp_path) as journal:  # holds the lock
        followed.refresh()
        assert followed.view() == study_view(EVENTS[:4])
        journal.append(EVENTS[4])
        followed.refresh()
        assert followed.view() == study_view(EVENTS[:5])
    with Journal(tmp_path):  # and following has not taken it
        followed.refresh()
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert set(before) == set(after)
    assert before["study.json"] == after["study.json"]
