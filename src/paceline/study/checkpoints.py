"""Where the states of forks are kept: one file for each fork and step."""

from dataclasses import dataclass
from pathlib import Path

from paceline.study.events import Interval


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoint files of a study.

    Args:
        folder: the folder that holds them.
    """

    folder: Path

    @classmethod
    def of_study(cls, study: Path) -> "Checkpoints":
        """Those of a study folder."""
        return cls(study / "checkpoints")

    def path(self, fork: int, step: int) -> Path:
        """The state of a fork after so many updates."""
        return self.folder / f"{fork}-{step}.pt"

    def origin(self, interval: Interval) -> Path:
        """The state that an interval begins from."""
        return self.path(*interval.origin)

    def target(self, interval: Interval) -> Path:
        """The state that an interval leaves behind."""
        return self.path(interval.fork, interval.stop)
