"""A study that is read as it grows, as the view that figures, tables and text are made from.

A small study is shown whole. Of a large one, whose journal may not fit into memory, only the lines that a page can show
are parsed: the forks that live, lead, won or came last and where they came from, intervals evenly spaced along each,
and the latest decisions. Nothing is averaged: every number shown was observed.
"""

import threading
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

from paceline.errors import JournalError
from paceline.study import Decided, Event, StudyState
from paceline.study.journal import read_line
from paceline.views.data import Selection, StudyView, read
from paceline.views.web.following import Tail, read_head

WHOLE_BYTES, WHOLE_LINES, WHOLE_FORKS = 4_000_000, 4_000, 200  # a study up to here is shown whole
MOST_FORKS, MOST_REPORTS, MOST_DECISIONS = 120, 1_200, 40  # of a larger one


class JournalLines(Sequence[Event | None]):
    """The events of a journal file, parsed when they are asked for, and kept until `release`."""

    def __init__(self, path: Path) -> None:
        self.path, self.offsets = path, array("q")
        self.parsed: dict[int, Event | None] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, number: int) -> Event | None: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Event | None]: ...
    def __getitem__(self, number: int | slice) -> Event | Sequence[Event | None] | None:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if number not in self.parsed:
            with self.path.open("rb") as file:
                file.seek(self.offsets[number])
                self.parsed[number] = read_line(self.path, number, file.readline())
        return self.parsed[number]

    def release(self) -> None:
        """Forget what can be read again."""
        self.parsed.clear()


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
        self._tail, self._lines = Tail(self.path), JournalLines(self.path)
        self.state = StudyState(self._lines)
        self._views: dict[tuple[Any, ...], StudyView] = {}
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
        """What tells a file from what it was; nothing if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _take(self) -> None:
        for offset, line in self._tail.lines():
            number, head = read_head(line)
            if number != self.state.count:
                raise JournalError(
                    f"line {self.state.count + 1} should be event {self.state.count}, got {number}: "
                    "a line is missing or was added"
                )
            self._lines.offsets.append(offset)
            self.state.add(head)
            self._views.clear()

    @property
    def revision(self) -> str:
        """Changes whenever what is shown does."""
        return f"{self.epoch}.{self.state.count}{'!' if self.problem else ''}"

    @property
    def whole(self) -> bool:
        """Whether all of the study is shown."""
        few = self.state.count <= WHOLE_LINES and len(self.state.forks) <= WHOLE_FORKS
        return few and self._tail.offset <= WHOLE_BYTES

    @property
    def held(self) -> int:
        """How many events are held in memory."""
        return len(self._lines.parsed)

    def release(self) -> None:
        """Forget what can be read again."""
        with self._lock:
            self._lines.release()
            self._views.clear()

    def settings(self) -> dict[str, Any]:
        """What the study was set up with; empty before its first line."""
        with self._lock:
            return self.state.settings

    def view(self, *, forks: Sequence[int] = (), decision: int | None = None) -> StudyView:
        """The study so far, or as it was when a decision had been made; read once for each revision.

        Args:
            forks: numbers of forks that must be there.
            decision: number of the decision, from 0.
        """
        with self._lock:
            if self.problem:
                raise JournalError(self.problem)
            key = (tuple(forks) if not self.whole else (), decision)
            if key not in self._views:
                self._views[key] = read(self.state, self._selection(forks, decision))
                if not self.whole:
                    self._forget_grids()
            return self._views[key]

    def _selection(self, forks: Sequence[int], decision: int | None) -> Selection:
        """What is shown, and up to which event."""
        end = None if decision is None else self._first_report_after(decision)
        if self.whole:
            return Selection(end=end)
        named = [] if decision is None else self._named(decision)
        shown = frozenset(self._shown([*forks, *named]))
        return Selection(shown, end, max(MOST_REPORTS // max(len(shown), 1), 3), MOST_DECISIONS)

    def _first_report_after(self, decision: int) -> int:
        """The number of the first report after a decision."""
        made = self.state.decisions[decision].event
        later = (n for fork in self.state.forks.values() for n in fork.reports if n > made)
        return min(later, default=self.state.count)

    def _forget_grids(self) -> None:
        """Decisions of a large study hold grids of megabytes: keep the latest only."""
        decisions = [decision.event for decision in self.state.decisions]
        for number in decisions[:-1]:
            self._lines.parsed.pop(number, None)

    def _shown(self, asked: Sequence[int]) -> Iterable[int]:
        """The forks of a large study that are shown, with their nearest ancestors as far as there is room."""
        state = self.state
        chosen = dict.fromkeys(asked)
        for decision in range(max(len(state.decisions) - 2, 0), len(state.decisions)):
            chosen |= dict.fromkeys(self._named(decision)[: MOST_FORKS // 3])
        recent = sorted(state.forks, reverse=True)
        running = [number for number in recent if state.forks[number].running]
        for number in [*running, *recent]:
            line: int | None = number
            while line is not None and line not in chosen and len(chosen) < MOST_FORKS + len(asked):
                chosen[line] = None
                line = state.forks[line].parent
            if len(chosen) >= MOST_FORKS + len(asked):
                break
        return (number for number in chosen if number in state.forks)

    def _named(self, decision: int) -> list[int]:
        """The forks that a decision ranks, calls best or trains."""
        made = self.state.decisions[decision]
        event: Decided = self.state.decided(made)
        rows = [*event.details.get("ranking", []), *event.details.get("best", [])]
        named = [int(row["fork"]) for row in rows]
        return [*named, *(self.state.interval(n).fork for n in made.intervals[:MOST_FORKS])][:MOST_FORKS]

    def latest_decisions(self, end: int, most: int, size: int) -> range:
        """The decisions before one, latest first: as many as asked for, fewer if they are large."""
        decisions = self.state.decisions
        offsets = self._lines.offsets
        stop = offsets[decisions[end].event] if end < len(decisions) else self._tail.offset
        first = end
        while first > 0 and end - first < most:
            if first < end and stop - offsets[decisions[first - 1].event] > size:
                break
            first -= 1
        return range(end - 1, first - 1, -1)
