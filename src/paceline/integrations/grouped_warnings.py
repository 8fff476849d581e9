"""Warnings about logs: one for each problem, however many logs have it."""

import warnings
from typing import Any


class GroupedWarnings:
    """Collects warnings about logs. When its context ends, it warns once of each problem."""

    def __init__(self) -> None:
        self._messages: dict[str, list[str]] = {}  # grouped by the message without its log

    def add(self, message: str, log: str) -> None:
        """Collect a warning about a log, which the message names."""
        self._messages.setdefault(message.replace(log, "", 1), []).append(message)

    def __enter__(self) -> "GroupedWarnings":
        """Start to collect."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Warn of what was collected, also if an error ends the context."""
        for first, *others in self._messages.values():
            count = len(others)
            more = f"{first.rstrip('.')}; the same for {count} other{'s' * (count > 1)}" if others else first
            warnings.warn(more, stacklevel=3)
