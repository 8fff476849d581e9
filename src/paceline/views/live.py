"""A study while it runs: redrawn in place on a terminal, one plain line per event anywhere else."""

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.study import Event, StudyState, describe_all
from paceline.views.data import StudyView
from paceline.views.format import format_progress
from paceline.views.study_view import study_view
from paceline.views.text import event_lines, fork_table

SHOWN_DECISIONS, SHOWN_GONE = 2, 4


class LineDisplay:
    """Plain lines, for logs and pipes.

    Args:
        console: where to print; None prints nothing.
        past: events of a study that is continued.
        title: what runs, put before each line.
    """

    def __init__(self, console: Console | None, past: Sequence[Event] = (), *, title: str = "") -> None:
        self._console, self._state = console, StudyState.of(past)
        self._prefix = f"{title}: " if title else ""

    def on_event(self, event: Event) -> None:
        """Print the lines of the event, if it has any."""
        if self._console is None:
            return
        self._state.append(event)
        for line in event_lines(event, study_view(self._state)):
            self._console.print(self._prefix + line, soft_wrap=True)

    def on_step(self, fork: int, step: int) -> None:
        """Say nothing: intervals are reported when they are done."""

    def __enter__(self) -> "LineDisplay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class ScreenDisplay:
    """Progress, forks and the latest decisions, redrawn in place a few times a second.

    Args:
        console: a terminal.
        past: events of a study that is continued.
        title: what runs.
    """

    def __init__(self, console: Console, past: Sequence[Event] = (), *, title: str = "") -> None:
        self._state, self._title = StudyState.of(past), title
        self._view, self._began = study_view(self._state), time.perf_counter()
        self._steps: dict[int, int] = {}
        self._before = self._view.done_steps
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=4)

    def on_event(self, event: Event) -> None:
        """Take the event in; the next redraw shows it."""
        self._state.append(event)
        self._view = study_view(self._state)

    def on_step(self, fork: int, step: int) -> None:
        """Move the bar inside an interval."""
        self._steps[fork] = step

    def __enter__(self) -> "ScreenDisplay":
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def _drawn(self) -> RenderableType:
        """The whole screen; called from the thread that redraws, so it reads the view once."""
        view, steps = self._view, self._steps
        forks = [f if f.stop is None else f._replace(step=max(steps.get(f.fork, 0), f.step)) for f in view.forks]
        done = view.done_steps + sum(f.step for f in forks) - sum(f.step for f in view.forks)
        over = ("dropped", "failed", "ended") if view.tasks else ("dropped", "failed")
        gone = [fork for fork in forks if fork.state in over]
        shown = [fork for fork in forks if fork not in gone[:-SHOWN_GONE]]
        words = "ended or failed earlier" if view.tasks else "dropped or failed earlier"
        more = [Text(f"{len(forks) - len(shown)} {words}", style="dim")] * (len(shown) < len(forks))
        reasons = [
            Text(f"decision {d.round}: {'; '.join(describe_all(d.reasons))}") for d in view.decisions[-SHOWN_DECISIONS:]
        ]
        return Group(self._bar(view, done), fork_table(view, shown), *more, *reasons)

    def _bar(self, view: StudyView, done: int) -> Table:
        elapsed, fresh = time.perf_counter() - self._began, done - self._before
        left = f"{elapsed / fresh * (view.total_steps - done):.0f} s left" if fresh > 0 else ""
        row = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(view.total_steps, 1), completed=done, width=30)
        title = [Text(self._title, style="bold")] if self._title else []
        row.add_row(*title, bar, format_progress(view, done), left)
        return row


def progress_display(
    console: Console | None, past: Sequence[Event] = (), *, title: str = ""
) -> LineDisplay | ScreenDisplay:
    """The view that suits where the output goes; None prints nothing."""
    if console is not None and console.is_terminal:
        return ScreenDisplay(console, past, title=title)
    return LineDisplay(console, past, title=title)
