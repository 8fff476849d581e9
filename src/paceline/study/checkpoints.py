"""Where the states of forks are kept: one file for each fork and step."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.study.events import Interval

_NUMBER = r"(0|[1-9]\d{0,11})"
_NAME = re.compile(rf"{_NUMBER}-{_NUMBER}\.pt(?:(?:\.[0-9a-f]+)?\.tmp)?")


def state_named(name: str) -> tuple[int, int] | None:
    """Fork and step of a checkpoint's file, also of one that was not written to its end; None for any other file."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


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

    def files(self) -> Iterator[tuple[tuple[int, int], Path]]:
        """The files of checkpoints, each with its fork and step. Other files are left out, and so are links."""
        if self.folder.is_symlink() or not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            state = state_named(path.name)
            if state is not None and path.is_file() and not path.is_symlink():
                yield state, path

    def delete(self, paths: Iterable[Path]) -> None:
        """Delete these files, if they are there. Nothing is deleted through a link."""
        if not self.folder.is_symlink():
            for path in paths:
                if not path.is_symlink():
                    path.unlink(missing_ok=True)

    def origin(self, interval: Interval) -> Path:
        """The state that an interval begins from."""
        return self.path(*interval.origin)

    def target(self, interval: Interval) -> Path:
        """The state that an interval leaves behind."""
        return self.path(interval.fork, interval.stop)
