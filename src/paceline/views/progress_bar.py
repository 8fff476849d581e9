"""A bar for a study that a Python program runs: one line at the foot of a terminal, or a bar in a notebook's output."""

import sys
import time
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

REDRAW_SECONDS = 0.5  # a notebook keeps every redraw until the page is drawn again


class TerminalBar:
    """A bar below what is printed to the same console."""

    def __init__(self, console: Console, done: int, total: int) -> None:
        columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=total, completed=done)
        self._progress.start()

    def move(self, done: int, text: str) -> None:
        """Show this many steps as done."""
        self._progress.update(self._task, completed=done, description=text)

    def close(self) -> None:
        """Remove it."""
        self._progress.stop()


class NotebookBar:
    """A bar in the output of a notebook's cell. It needs no widgets."""

    def __init__(self, done: int, total: int) -> None:
        self._display: Any = import_module("IPython.display")  # there is one, since this is a notebook
        self._total, self._drawn = total, -float("inf")
        self._handle: Any = self._display.display(self._html(done, ""), display_id=True)

    def _html(self, done: int, text: str) -> Any:
        return self._display.HTML(f'<progress value="{done}" max="{self._total}"></progress> {text}')

    def move(self, done: int, text: str) -> None:
        """Show this many steps as done."""
        if time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._handle.update(self._html(done, text))

    def close(self) -> None:
        """Remove it."""
        self._handle.update(self._display.HTML(""))


Bar = TerminalBar | NotebookBar


def has_room_for_bar(console: Console) -> bool:
    """Whether the output goes to a terminal or a notebook, and not to a file or a pipe."""
    return console.is_terminal or is_notebook()


def progress_bar(console: Console, done: int, total: int) -> Bar:
    """The bar that fits where the output goes."""
    return NotebookBar(done, total) if is_notebook() else TerminalBar(console, done, total)


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
