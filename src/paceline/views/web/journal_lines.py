"""The events of a journal that may not fit into memory: parsed when they are needed, and forgotten again."""

from array import array
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, overload

from paceline.errors import JournalError
from paceline.study import Decided, Event, open_regular_file, read_line

GRIDS = ("candidates", "p_fail", "surface")  # details of megabytes, drawn for one decision at a time


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
        self._keep_open = False

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
            self.parsed[number] = self._parse(number)
        return self.parsed[number]

    def _parse(self, number: int) -> Event | None:
        file = self._file or self._opened()
        try:
            file.seek(self.offsets[number])
            event = read_line(self.path, number, file.readline())
        finally:
            if self._keep_open:
                self._file = file
            else:
                file.close()
        if isinstance(event, Decided) and self.grids_of not in (None, number):
            return replace(event, details={k: v for k, v in event.details.items() if k not in GRIDS})
        return event

    def _opened(self) -> BinaryIO:
        file = open_regular_file(self.path)
        if file is None:
            raise JournalError(f"{self.path} is not there any more: it was removed")
        return file

    @contextmanager
    def reading(self) -> Generator[None]:
        """Open the file at most once for all events that are parsed in the block."""
        self._keep_open = True
        try:
            yield
        finally:
            self._keep_open = False
            if self._file is not None:
                self._file.close()
                self._file = None

    @contextmanager
    def keeping_used(self) -> Generator[None]:
        """The same; at the end, forget the events that were not asked for in the block."""
        self._used.clear()
        with self.reading():
            yield
        self.parsed = {number: event for number, event in self.parsed.items() if number in self._used}

    @contextmanager
    def forgetting_new(self) -> Generator[None]:
        """The same; at the end, forget the events that were parsed in the block."""
        known = set(self.parsed)
        with self.reading():
            yield
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
