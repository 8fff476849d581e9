"""A study while it runs: redrawn in place on a terminal, one plain line per event anywhere else."""

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.safe_text import safe_text
from paceline.study import Event, StudyState, describe_all
from paceline.views.data import StudyView
from paceline.views.format import format_progress
from paceline.views.projection import study_view
from paceline.views.text import event_lines, fork_table

MAX_DECISIONS = 2  # on the screen, the latest
MAX_STOPPED = 4  # forks on the screen that do not go on, the latest


class LineDisplay:
    """Plain lines, for logs and pipes.

    Args:
        console: where to print; None prints nothing.
        past: events of a study that is continued.
        title: the name of the study, before each line.
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
        """Print nothing: an interval is reported when it is done."""

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
        title: the name of the study.
    """

    def __init__(self, console: Console, past: Sequence[Event] = (), *, title: str = "") -> None:
        self._state, self._title = StudyState.of(past), title
        self._view, self._began = study_view(self._state), time.perf_counter()
        self._steps: dict[int, int] = {}
        self._done_before = self._view.done_steps
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4)

    def on_event(self, event: Event) -> None:
        """Add an event; the next redraw shows it."""
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

    def _draw(self) -> RenderableType:
        """The whole screen. The thread that redraws calls this, so it reads the view once."""
        view, steps = self._view, self._steps
        forks = [f if f.stop is None else f._replace(step=max(steps.get(f.fork, 0), f.step)) for f in view.forks]
        done = view.done_steps + sum(f.step for f in forks) - sum(f.step for f in view.forks)
        final_states = ("dropped", "failed", "ended") if view.tasks else ("dropped", "failed", "turned")
        stopped = [fork.fork for fork in forks if fork.state in final_states]
        hidden = set(stopped[:-MAX_STOPPED])
        shown = [fork for fork in forks if fork.fork not in hidden]
        how = "ended or failed earlier" if view.tasks else "dropped or failed earlier"
        note = [Text(f"{len(hidden)} {how}", style="dim")] * bool(hidden)
        reasons = [
            Text(safe_text(f"decision {d.round}: {'; '.join(describe_all(d.reasons))}"))
            for d in view.decisions[-MAX_DECISIONS:]
        ]
        return Group(self._bar(view, done), fork_table(view, shown), *note, *reasons)

    def _bar(self, view: StudyView, done: int) -> Table:
        elapsed, steps = time.perf_counter() - self._began, done - self._done_before
        left = f"{elapsed / steps * (view.total_steps - done):.0f} s left" if steps > 0 else ""
        row = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(view.total_steps, 1), completed=done, width=30)
        title = [Text(safe_text(self._title), style="bold")] if self._title else []
        row.add_row(*title, bar, format_progress(view, done), left)
        return row


def progress_display(
    console: Console | None, past: Sequence[Event] = (), *, title: str = ""
) -> LineDisplay | ScreenDisplay:
    """What shows a running study: a screen on a terminal, lines elsewhere, nothing if there is no console."""
    if console is not None and console.is_terminal:
        return ScreenDisplay(console, past, title=title)
    return LineDisplay(console, past, title=title)
