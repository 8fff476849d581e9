"""Which trial runs which fork, and the states that forks begin from: what a restored experiment needs beside a journal.

States are linked, not copied, into the study's folder, since Ray deletes checkpoints by rules of its own
(`num_to_keep`). The file is written whole, before the journal says what follows from it.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from paceline.files import write_atomically

State = tuple[int, int]  # a fork, and a step


class Record:
    """A file beside the journal.

    Args:
        folder: of the study.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "trials.json"
        known: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.trials: int = known.get("trials", 0)
        self.forks: dict[str, int] = known.get("forks", {})  # by trial
        self.metrics: dict[str, dict[str, Any]] = known.get("metrics", {})  # by state

    def place(self, state: State) -> Path:
        """Where a state lies."""
        return self.folder / "checkpoints" / f"{state[0]}-{state[1]}"

    def metrics_of(self, state: State) -> dict[str, Any]:
        """What Ray knew about the trial at that state, plain numbers and words only."""
        return dict(self.metrics[self.place(state).name])

    def keep(self, state: State, source: Path, metrics: dict[str, Any]) -> None:
        """Keep a state, safe from Ray's own tidying."""
        target = self.place(state)
        shutil.rmtree(target, ignore_errors=True)  # of an attempt that was cut off
        shutil.copytree(source, target, copy_function=_link)
        self.metrics[target.name] = {k: v for k, v in metrics.items() if isinstance(v, bool | int | float | str)}
        self.save()

    def keep_only(self, states: set[State]) -> None:
        """Forget states that nothing begins from any more."""
        wanted = {self.place(state).name for state in states}
        gone = set(self.metrics) - wanted
        if not gone:
            return
        self.metrics = {name: metrics for name, metrics in self.metrics.items() if name in wanted}
        self.save()
        for name in gone:
            shutil.rmtree(self.folder / "checkpoints" / name, ignore_errors=True)

    def save(self) -> None:
        """Write the file."""
        data = {"trials": self.trials, "forks": self.forks, "metrics": self.metrics}
        write_atomically(self.path, lambda file: file.write(json.dumps(data).encode()))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
