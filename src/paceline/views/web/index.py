"""Where what stands in a journal: offsets of lines, by fork and by decision. A few bytes a line."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from paceline.errors import JournalError
from paceline.views.web.following import Head


def _offsets() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class ForkLines:
    """The lines of one fork.

    Args:
        parent: the fork it was cloned from.
        start: the step it began at.
        proposed: its first proposal.
        latest: its latest proposal.
        step: where it stands.
        going: whether an interval of it has not been reported yet.
        reports: its intervals, done or failed.
        dropped: that it will not go on; 0 where it may.
        failed: whether it failed.
    """

    parent: int | None
    start: int
    proposed: int
    latest: int
    step: int
    going: bool = True
    reports: "array[int]" = field(default_factory=_offsets)
    dropped: int = 0
    failed: bool = False

    @property
    def alive(self) -> bool:
        """Whether it may go on."""
        return not (self.dropped or self.failed)


class Index:
    """What the heads of a journal's lines add up to."""

    def __init__(self) -> None:
        self.offsets, self.reports, self.decisions = _offsets(), _offsets(), _offsets()
        self.done_before = _offsets()  # steps of all forks before each decision
        self.forks = dict[int, ForkLines]()
        self.done, self.finished = 0, False

    def add(self, offset: int, head: Head) -> None:
        """Take in the next line."""
        if head.number != len(self.offsets):
            raise JournalError(
                f"line {len(self.offsets) + 1} should be event {len(self.offsets)}, got {head.number}: "
                "a line is missing or was added"
            )
        try:
            self._take(offset, head)
        except (LookupError, TypeError) as error:
            where = f"line {len(self.offsets) + 1}, {head.event!r}"
            raise JournalError(f"{where}: {error!r}: the journal was edited or damaged, restore it") from error
        self.offsets.append(offset)

    def _take(self, offset: int, head: Head) -> None:
        _, event, number, parent, start, stop = head
        match event:
            case "decided":
                self.decisions.append(offset)
                self.done_before.append(self.done)
            case "finished":
                self.finished = True
            case "created" | "cloned":
                pass
            case _ if number is None:
                raise TypeError("it lacks the number of its fork")
            case "dropped":
                self.forks[number].dropped = offset
            case _ if start is None or stop is None:
                raise TypeError("it lacks the step it begins or ends at")
            case "proposed" if number in self.forks:
                self.forks[number].latest, self.forks[number].going = offset, True
            case "proposed":
                self.forks[number] = ForkLines(parent, start, offset, offset, start)
            case _:
                fork = self.forks[number]
                fork.step, fork.going, fork.failed = stop, False, event == "failed"
                self.done += stop - start
                fork.reports.append(offset)
                self.reports.append(offset)

    def decision_before(self, offset: int) -> int | None:
        """The line of the latest decision up to a line."""
        found = bisect_right(self.decisions, offset)
        return self.decisions[found - 1] if found else None

    def first_report_after(self, offset: int) -> int | None:
        """The line of the first report after a line."""
        found = bisect_right(self.reports, offset)
        return self.reports[found] if found < len(self.reports) else None
