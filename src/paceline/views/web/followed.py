"""One study, followed: what its journal holds so far, as the view that figures, tables and words are made from.

A small study is shown whole. Of a large one, whose journal may not fit into memory, only the lines that a page can show
are parsed: the forks that live, lead, won or came last and where they came from, intervals evenly spaced along
each, and the latest decisions. Nothing is averaged: every number shown was observed.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from paceline.errors import JournalError
from paceline.study import Created, Decided, Event, Proposed
from paceline.study.journal import read_line
from paceline.views.data import StudyView, read
from paceline.views.web.following import Tail, head_of
from paceline.views.web.index import ForkLines, Index

WHOLE_BYTES, WHOLE_LINES, WHOLE_FORKS = 4_000_000, 4_000, 200  # a study up to here is shown whole
MOST_FORKS, MOST_REPORTS, MOST_DECISIONS = 120, 1_200, 40  # of a larger one
GRIDS = ("candidates", "p_fail", "surface")  # large, and drawn for one decision at a time


class Followed:
    """A study folder that is read as it grows. Any thread may call it.

    Args:
        folder: the study folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "journal.jsonl"
        self._lock = threading.RLock()
        self._restart()
        self.epoch = 0

    def _restart(self) -> None:
        self._tail, self._index = Tail(self.path), Index()
        self._parsed = dict[int, Event]()
        self.problem, self._damaged = "", tuple[int, ...]()

    def grown(self) -> bool:
        """Whether the journal holds more than was read, or is another one: a look at the file, not into it."""
        return self._tail.grown() if not self.problem else self._looks() != self._damaged

    def refresh(self) -> None:
        """Read what is new. A journal that was replaced, as by a study that began anew, is read from its start."""
        with self._lock:
            if self._tail.replaced() or (self.problem and self.grown()):
                self.epoch += 1
                self._restart()
            elif self.problem:
                return
            fresh, looks = self._tail.offset == 0, self._looks()
            try:
                self._take()
            except JournalError as error:
                self._restart()
                self.epoch += 1
                if fresh:
                    self.problem, self._damaged = f"{self.path.name}: {error}", looks
                    return
                self.refresh()  # replaced by one that grew as long before it was looked at

    def _looks(self) -> tuple[int, ...]:
        """What tells a file from what it was; nothing where there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _take(self) -> None:
        for offset, line in self._tail.lines():
            self._index.add(offset, head_of(line))

    @property
    def revision(self) -> str:
        """Changes whenever what is shown does."""
        return f"{self.epoch}.{len(self._index.offsets)}{'!' if self.problem else ''}"

    @property
    def index(self) -> Index:
        """Where what stands in the journal."""
        return self._index

    @property
    def whole(self) -> bool:
        """Whether all of the study is shown."""
        few = len(self._index.offsets) <= WHOLE_LINES and len(self._index.forks) <= WHOLE_FORKS
        return few and self._tail.offset <= WHOLE_BYTES

    @property
    def held(self) -> int:
        """How many events are held in memory."""
        return len(self._parsed)

    def release(self) -> None:
        """Forget what can be read again."""
        with self._lock:
            self._parsed.clear()

    def settings(self) -> dict[str, Any]:
        """What the study was asked for; empty before its first line."""
        with self._lock:
            if not self._index.offsets:
                return {}
            with self.path.open("rb") as file:
                event = self._event(file, 0)
            return event.settings if isinstance(event, Created) else {}

    def view(self, *, forks: Sequence[int] = (), decision: int | None = None) -> StudyView:
        """What the study comes to, with these forks among those shown; or came to when a decision had been made.

        Args:
            forks: numbers of forks that must be there.
            decision: how many decisions there were before the one that was just made.
        """
        with self._lock:
            if self.problem:
                raise JournalError(self.problem)
            end = None if decision is None else self._index.first_report_after(self._index.decisions[decision])
            asked = forks if decision is None or self.whole else [*forks, *self._at(decision)]
            shown = set[int]() if self.whole else set(self._shown(asked))
            offsets = list(self._index.offsets) if self.whole else sorted(self._lines(shown, decision))
            offsets = offsets if end is None else offsets[: bisect_left(offsets, end)]
            with self.path.open("rb") as file:
                events = [self._event(file, offset) for offset in offsets]
            if self.whole:
                return read(events)
            self._parsed = {offset: self._parsed[offset] for offset in offsets}
            view = read([_only(event, shown) for event in events])
            made = [offset for offset, event in zip(offsets, events, strict=True) if isinstance(event, Decided)]
            view = self._with_true_costs(view, made)
            return view if decision is not None else view._replace(done_steps=self._index.done)

    def _with_true_costs(self, view: StudyView, made: Sequence[int]) -> StudyView:
        """Steps of all forks, not of those shown only; what was best on the way there is not known without all."""
        done = (self._index.done_before[bisect_left(self._index.decisions, offset)] for offset in made)
        decisions = tuple(d._replace(done=steps) for d, steps in zip(view.decisions, done, strict=True))
        return view._replace(decisions=decisions, best_so_far=())

    def round(self, number: int) -> list[Event]:
        """All events of a decision, up to the next one; decisions are counted from 0."""
        with self._lock:
            starts = self._index.decisions
            end = starts[number + 1] if number + 1 < len(starts) else self._tail.offset
            with self.path.open("rb") as file:
                file.seek(starts[number])
                lines = file.read(end - starts[number]).splitlines(keepends=True)
            first = bisect_left(self._index.offsets, starts[number])
            return [read_line(self.path, first + i, line) for i, line in enumerate(lines)]

    def latest_rounds(self, end: int, most: int, size: int) -> range:
        """The decisions before one, latest first: as many as asked for, fewer where they are large."""
        starts = self._index.decisions
        stop = starts[end] if end < len(starts) else self._tail.offset
        first = end
        while first > 0 and end - first < most and (first == end or stop - starts[first - 1] <= size):
            first -= 1
        return range(end - 1, first - 1, -1)

    def _event(self, file: BinaryIO, offset: int) -> Event:
        if offset not in self._parsed:
            file.seek(offset)
            number = bisect_left(self._index.offsets, offset)
            event = read_line(self.path, number, file.readline())
            if isinstance(event, Decided) and not self.whole and offset != self._gridded:
                event = replace(event, details={k: v for k, v in event.details.items() if k not in GRIDS})
            self._parsed[offset] = event
        return self._parsed[offset]

    _gridded = 0  # the decision whose grids are kept, of a study that is not shown whole

    def _shown(self, asked: Sequence[int]) -> Iterable[int]:
        """The forks of a large study that are shown, with their nearest ancestors as far as there is room."""
        index = self._index
        chosen = dict.fromkeys(asked)
        if index.decisions:
            with self.path.open("rb") as file:
                latest = [self._event(file, offset) for offset in index.decisions[-2:]]
            for event in reversed(latest):
                if isinstance(event, Decided):
                    chosen |= dict.fromkeys(_named(event)[: MOST_FORKS // 3])
        recent = sorted(index.forks, reverse=True)
        living = [n for n in recent if index.forks[n].alive and index.forks[n].going]
        for number in [*living, *recent]:
            line: int | None = number
            while line is not None and line not in chosen and len(chosen) < MOST_FORKS + len(asked):
                chosen[line] = None
                line = index.forks[line].parent
            if len(chosen) >= MOST_FORKS + len(asked):
                break
        return (number for number in chosen if number in index.forks)

    def _at(self, decision: int) -> list[int]:
        """The forks that a decision was about."""
        events = self.round(decision)
        named = [n for event in events if isinstance(event, Decided) for n in _named(event)]
        return [*named, *(event.fork for event in events if isinstance(event, Proposed))][:MOST_FORKS]

    def _lines(self, shown: set[int], decision: int | None) -> set[int]:
        """The lines of a large study that are parsed."""
        index = self._index
        count = len(index.decisions) if decision is None else decision + 1
        recent = index.decisions[max(count - MOST_DECISIONS, 0) : count]
        gridded = recent[-1] if recent else 0
        if gridded != self._gridded:
            self._parsed.pop(gridded, None)
            self._parsed.pop(self._gridded, None)
            self._gridded = gridded
        found = {0, *recent}
        since = recent[0] if recent else 0
        each = max(MOST_REPORTS // max(len(shown), 1), 3)
        for number in shown:
            found |= self._fork_lines(index.forks[number], since, each)
        if index.finished:
            found.add(index.offsets[-1])
        return found

    def _fork_lines(self, fork: ForkLines, since: int, each: int) -> set[int]:
        found = {fork.proposed, fork.latest, *_spaced(fork.reports, each)}
        late = fork.reports[bisect_right(fork.reports, since) :]
        found |= set(late[-each:])
        if fork.dropped:
            found |= {fork.dropped, self._index.decision_before(fork.dropped) or 0}
        return found


def _spaced(offsets: Sequence[int], most: int) -> list[int]:
    """So many of them, evenly spaced, first and last among them."""
    if len(offsets) <= most:
        return list(offsets)
    return [offsets[i * (len(offsets) - 1) // (most - 1)] for i in range(most)]


def _named(event: Decided) -> list[int]:
    """The forks that a decision ranks, or calls best."""
    rows = [*event.details.get("ranking", []), *event.details.get("best", [])]
    return [int(row["fork"]) for row in rows]


def _only(event: Event, shown: set[int]) -> Event:
    """An event that speaks of nothing but the forks shown."""
    if isinstance(event, Proposed) and event.parent is not None and event.parent not in shown:
        return replace(event, parent=None)
    if not isinstance(event, Decided):
        return event
    details = {
        key: [row for row in rows if "fork" not in row or row["fork"] in shown]
        if key in ("ranking", "best", "forecast", "candidates", "p_fail")
        else rows
        for key, rows in event.details.items()
    }
    return replace(event, details=details)
