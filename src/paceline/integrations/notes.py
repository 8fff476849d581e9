"""What is worth saying of logs that are read: once, however many logs it is true of."""

import warnings
from typing import Any


class Notes:
    """Gathers what is to be said of each log, and on leaving its context warns of each thing once."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {}  # messages that differ in the log alone

    def add(self, message: str, where: str) -> None:
        """Say this of the log `where`, which the message names."""
        self._said.setdefault(message.replace(where, "", 1), []).append(message)

    def __enter__(self) -> "Notes":
        """Begin to gather."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Warn of what was gathered, on the way to an error too."""
        for first, *others in self._said.values():
            count = len(others)
            more = f"{first.rstrip('.')}; the same for {count} other{'s' * (count > 1)}" if others else first
            warnings.warn(more, stacklevel=3)
