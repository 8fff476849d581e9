"""Where the time of a process goes: wall seconds by what they were spent on."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Lap:
    """One stretch of time; `seconds` is known when it is over."""

    seconds: float = 0.0


class Stopwatch:
    """Adds up wall seconds under names.

    >>> watch = Stopwatch("training")
    >>> with watch.on("training") as lap:
    ...     pass
    >>> watch.seconds["training"] == lap.seconds
    True
    """

    def __init__(self, *names: str) -> None:
        self.seconds = dict.fromkeys(names, 0.0)

    def move(self, source: str, name: str, seconds: float) -> None:
        """Count seconds under another name than they were counted under."""
        for key, change in ((source, -seconds), (name, seconds)):
            self.seconds[key] = self.seconds.get(key, 0.0) + change

    @contextmanager
    def on(self, name: str) -> Generator[Lap]:
        """Count the time inside under `name`."""
        lap, began = Lap(), time.perf_counter()
        try:
            yield lap
        finally:
            lap.seconds = time.perf_counter() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + lap.seconds
