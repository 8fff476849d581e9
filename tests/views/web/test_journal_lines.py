"""Events of a journal, parsed when they are needed."""

import io
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from paceline.study import Decided, Event
from paceline.views.web.journal_lines import JournalLines
from tests.views.studies import EVENTS
from tests.views.web.studies import write

SURFACE = {"values": [1.0], "rates": [0.1], "latents": [{"mean": [[1.0]], "deviation": [[0.5]]}]}
P_FAIL = {"fork": 1, "rates": [0.1], "probability": [0.5]}
GRID = {"surface": SURFACE, "p_fail": [P_FAIL], "candidates": [{"fork": 1, "rates": [0.1]}], "ranking": []}
WITH_GRIDS: list[Event] = [replace(e, details=GRID) if isinstance(e, Decided) else e for e in EVENTS]
DECISIONS = [number for number, event in enumerate(WITH_GRIDS) if isinstance(event, Decided)]


@pytest.fixture
def lines(tmp_path: Path) -> JournalLines:
    path = write(tmp_path, WITH_GRIDS) / "journal.jsonl"
    lines = JournalLines(path)
    lengths = [len(line) for line in path.read_bytes().splitlines(keepends=True)]
    lines.offsets.extend([0, *accumulate(lengths[:-1])])
    return lines


def test_events_are_those_of_the_journal(lines: JournalLines) -> None:
    assert lines.parsed == {}
    assert [lines[number] for number in reversed(range(len(lines)))] == WITH_GRIDS[::-1]
    assert lines[2:5] == WITH_GRIDS[2:5]
    lines.release()
    assert lines.parsed == {}
    assert lines[3] == WITH_GRIDS[3]


def test_blocks_keep_what_was_used_or_what_was_known(lines: JournalLines) -> None:
    lines[0], lines[1]
    with lines.keeping_used():
        lines[1], lines[2]
    assert set(lines.parsed) == {1, 2}
    with lines.forgetting_new():
        lines[2], lines[3]
    assert set(lines.parsed) == {1, 2}


def test_grids_of_one_decision_alone_are_kept(lines: JournalLines) -> None:
    def with_grids() -> list[int]:
        events = {number: lines[number] for number in DECISIONS}
        return [n for n, event in events.items() if isinstance(event, Decided) and "surface" in event.details]

    assert with_grids() == DECISIONS
    for number in DECISIONS:
        lines.keep_grids_of(number)
        assert with_grids() == [number]
    lines.keep_grids_of(None)
    assert with_grids() == DECISIONS


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    files, real = list[Path](), io.open
    monkeypatch.setattr(
        io, "open", lambda path, *rest, **options: (files.append(path), real(path, *rest, **options))[1]
    )
    return files


def test_a_block_opens_the_file_once_and_only_if_it_is_read(lines: JournalLines, opened: list[Path]) -> None:
    with lines.reading():
        pass
    assert len(opened) == 0
    with lines.reading():
        lines[0], lines[1], lines[2]
    assert len(opened) == 1
    lines[3], lines[4]
    assert len(opened) == 3
