"""Consoles that print into a string."""

import io

from rich.console import Console


def string_console(terminal: bool = False) -> tuple[Console, io.StringIO]:
    """A console and what it prints."""
    file = io.StringIO()
    return Console(file=file, force_terminal=terminal, width=160, highlight=False, markup=False), file
