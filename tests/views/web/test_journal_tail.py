"""The lines of a growing journal: each once, and only when it is whole."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import JournalError
from paceline.study import Event
from paceline.study.events import to_json
from paceline.study.journal_line import write_line
from paceline.study.state import head_of
from paceline.views.web.journal_tail import JournalTail, read_head
from tests.views.studies import EVENTS


@given(cuts=st.lists(st.integers(0, 300), max_size=8))
def test_lines_come_once_and_whole_however_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "journal.jsonl"
    content = b"".join(b"%d " % i * (i % 7) + b"\n" for i in range(40))
    tail, seen, at = JournalTail(path), list[bytes](), 0
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
    assert [line for _, line in JournalTail(tmp_path / "j").lines()] == [b"a" * 30 + b"\n", b"b\n", b"\n"]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_the_front_of_a_line_says_what_the_whole_does(event: Event) -> None:
    line = write_line(7, event)
    number, head = read_head(line)
    assert number == 7
    older = re.sub(rb',"crc32":.*', b"}\n", line.replace(b'{"v":3,', b'{ "v":2,'))
    assert head == read_head(older)[1]  # not as we write it: parsed
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
    with pytest.raises(JournalError, match=r"not an event|unknown event"):
        read_head(line)


def test_a_damaged_line_is_noticed_by_its_checksum() -> None:
    line = write_line(7, EVENTS[-1])
    for damaged in (
        line.replace(b'"n":7', b'"n":5'),
        line.replace(b'{"v":3', b'{"v":2'),
        line.replace(b"crc32", b"crc22"),
    ):
        with pytest.raises(JournalError, match="does not have its checksum"):
            read_head(damaged)


def test_a_file_that_is_replaced_shorter_or_gone_is_not_the_one_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    tail = JournalTail(path)
    assert not tail.is_replaced(None)
    path.write_bytes(b"a\nb\n")
    list(tail.lines())
    assert not tail.is_replaced(path.stat())
    assert tail.is_replaced(None)
    path.write_bytes(b"a\n")
    assert tail.is_replaced(path.stat())
    (tmp_path / "other").write_bytes(b"a\nb\nc\n")
    assert tail.is_replaced((tmp_path / "other").stat())


def test_a_file_that_grows_while_it_is_read_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"a\n" * 10)
    tail, count = JournalTail(path), 0
    with path.open("ab", buffering=0) as file:
        for _ in tail.lines():
            file.write(b"more\n")
            count += 1
    assert count == 10
    assert len([*tail.lines()]) == 10
