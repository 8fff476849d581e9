"""Bars in a terminal and in a notebook."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from paceline.views.progress_bar import NotebookBar, TerminalBar, has_room_for_bar, is_notebook, progress_bar


def test_a_terminal_shows_what_is_done_and_then_nothing() -> None:
    file = io.StringIO()
    bar = progress_bar(Console(file=file, force_terminal=True, width=80), 0, 200)
    assert isinstance(bar, TerminalBar)
    bar.move(50, "50 of 200 steps")
    bar.close()
    assert "50 of 200 steps" in file.getvalue()


def test_files_and_pipes_have_no_bar() -> None:
    assert not has_room_for_bar(Console(file=io.StringIO()))


class Output:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, what: Any) -> None:
        self.shown.append(what)


def test_a_notebook_has_a_bar_in_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output()

    def display(what: Any, *, display_id: bool) -> Output:
        output.update(what)
        return output

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display, HTML=str))
    assert is_notebook()
    bar = progress_bar(Console(file=io.StringIO()), 0, 200)
    assert isinstance(bar, NotebookBar)
    bar.move(50, "50 of 200 steps")
    bar.move(51, "51 of 200 steps")  # too soon to be drawn
    bar.close()
    assert output.shown == [
        '<progress value="0" max="200"></progress> ',
        '<progress value="50" max="200"></progress> 50 of 200 steps',
        "",
    ]
