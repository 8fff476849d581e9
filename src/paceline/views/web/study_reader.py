"""A study that is read as it grows, as the view that figures, tables and text are made from.

A small study is shown whole. Of a large one, whose journal may not fit into memory, only the lines that a page can show
are parsed: the forks that live, lead, won or came last and where they came from, intervals evenly spaced along each,
and the latest decisions. Nothing is averaged: every number shown was observed.
"""

import threading
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, overload

from paceline.errors import JournalError
from paceline.study import Decided, Event, StudyState, read_line
from paceline.views.data import StudyView
from paceline.views.decision_text import DecisionText, decision_text
from paceline.views.study_view import Selection, study_view
from paceline.views.web.journal_tail import Tail, read_head

WHOLE_BYTES, WHOLE_LINES, WHOLE_FORKS = 4_000_000, 4_000, 200  # a study up to here is shown whole
MOST_FORKS, MOST_REPORTS, MOST_DECISIONS = 120, 1_200, 40  # of a larger one
MOST_VIEWS = 4  # views in memory, of each study
GRIDS = ("candidates", "p_fail", "surface")  # large, and drawn for one decision at a time


class JournalLines(Sequence[Event | None]):
    """The events of a journal file, parsed when they are asked for.

    Args:
        path: the file.

    Attributes:
        offsets: the byte at which each line begins.
        parsed: the events in memory, by number.
        grids_of: the only decision whose grids are kept, by the number of its event; None keeps those of all.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offsets = path, array("q")
        self.parsed: dict[int, Event | None] = {}
        self.grids_of: int | None = None
        self._used = set[int]()
        self._file: BinaryIO | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, number: int) -> Event | None: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Event | None]: ...
    def __getitem__(self, number: int | slice) -> Event | Sequence[Event | None] | None:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        self._used.add(number)
        if number not in self.parsed:
            with nullcontext(self._file) if self._file is not None else self.path.open("rb") as file:
                file.seek(self.offsets[number])
                event = read_line(self.path, number, file.readline())
            if isinstance(event, Decided) and self.grids_of not in (None, number):
                event = replace(event, details={k: v for k, v in event.details.items() if k not in GRIDS})
            self.parsed[number] = event
        return self.parsed[number]

    @contextmanager
    def keeping_used(self) -> Generator[None]:
        """Forget, at the end of the block, the events that were not asked for inside it."""
        self._used.clear()
        with self.path.open("rb") as self._file:
            try:
                yield
            finally:
                self._file = None
        self.parsed = {number: event for number, event in self.parsed.items() if number in self._used}

    @contextmanager
    def forgetting_new(self) -> Generator[None]:
        """Forget, at the end of the block, the events that were parsed inside it."""
        known = set(self.parsed)
        with self.path.open("rb") as self._file:
            try:
                yield
            finally:
                self._file = None
        self.parsed = {number: event for number, event in self.parsed.items() if number in known}

    def keep_grids_of(self, number: int | None) -> None:
        """Keep the grids of this decision alone, or of all."""
        if number != self.grids_of:
            changed = [*self.parsed] if number is None or self.grids_of is None else [number, self.grids_of]
            for event in changed:
                self.parsed.pop(event, None)
            self.grids_of = number

    def release(self) -> None:
        """Forget what can be read again."""
        self.parsed.clear()


class StudyReader:
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
            key = (() if self.whole else tuple(forks), decision)
            if key not in self._views:
                self._views[key] = self._read(forks, decision)
                while len(self._views) > MOST_VIEWS:
                    del self._views[next(iter(self._views))]
            return self._views[key]

    def _read(self, forks: Sequence[int], decision: int | None) -> StudyView:
        if self.whole:
            self._lines.keep_grids_of(None)
            return study_view(self.state, self._selection(forks, decision))
        decisions = self.state.decisions
        latest = decisions[-1 if decision is None else decision].event if decisions else 0
        self._lines.keep_grids_of(latest)
        is_main = decision is None and not forks  # read again whenever the study grows: its events stay in memory
        with self._lines.keeping_used() if is_main else self._lines.forgetting_new():
            return study_view(self.state, self._selection(forks, decision))

    def decision_text(self, decision: int) -> DecisionText:
        """A decision in English; its events are not kept in memory."""
        with self._lock, self._lines.forgetting_new():
            return decision_text(self.state, decision)

    def _selection(self, forks: Sequence[int], decision: int | None) -> Selection:
        """What is shown, and up to which event."""
        end = None if decision is None else self._first_report_after(decision)
        if self.whole:
            return Selection(end=end)
        named = [] if decision is None else self._trained(decision)
        shown = frozenset(self._shown([*forks, *named]))
        return Selection(shown, end, max(MOST_REPORTS // max(len(shown), 1), 3), MOST_DECISIONS)

    def _first_report_after(self, decision: int) -> int:
        """The number of the first report after a decision."""
        reports = self.state.report_numbers
        later = bisect_right(reports, self.state.decisions[decision].event)
        return reports[later] if later < len(reports) else self.state.count

    def _shown(self, asked: Sequence[int]) -> Iterable[int]:
        """The forks of a large study that are shown, with their nearest ancestors as far as there is room."""
        state = self.state
        chosen = dict.fromkeys(asked)
        for decision in reversed(state.decisions[-2:]):
            chosen |= dict.fromkeys(_ranked(state.decided(decision))[: MOST_FORKS // 3])
        recent = sorted(state.forks, reverse=True)
        running = [number for number in recent if state.forks[number].alive and state.forks[number].running]
        for number in [*running, *recent]:
            line: int | None = number
            while line is not None and line not in chosen and len(chosen) < MOST_FORKS + len(asked):
                chosen[line] = None
                line = state.forks[line].parent
            if len(chosen) >= MOST_FORKS + len(asked):
                break
        return (number for number in chosen if number in state.forks)

    def _trained(self, decision: int) -> list[int]:
        """The forks that a decision ranks, calls best or trains."""
        made = self.state.decisions[decision]
        trained = (self.state.interval(number).fork for number in made.intervals[:MOST_FORKS])
        return [*_ranked(self.state.decided(made)), *trained][:MOST_FORKS]

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


def _ranked(event: Decided) -> list[int]:
    """The forks that a decision ranks, or calls best."""
    rows = [*event.details.get("ranking", []), *event.details.get("best", [])]
    return [int(row["fork"]) for row in rows]
