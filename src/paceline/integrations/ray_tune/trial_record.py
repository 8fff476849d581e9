"""Which trial runs which fork, and the states that forks begin from: what a restored experiment needs beside a journal.

States are linked, not copied, into the study's folder, because Ray deletes checkpoints by its own rules
(`num_to_keep`). The file is replaced as a whole, before the journal holds anything that follows from it.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from paceline.files import write_atomically

ForkState = tuple[int, int]  # the number of a fork, and a step
_NAME = re.compile(r"\d+-\d+")  # of a checkpoint: only these are deleted


class TrialRecord:
    """The file `trials.json` beside the journal, and the checkpoints that belong to it.

    Args:
        folder: of the study.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "trials.json"
        data: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.count: int = data.get("trials", 0)
        self.fork_of: dict[str, int] = data.get("forks", {})  # by the name of a trial
        saved: dict[str, dict[str, Any]] = data.get("metrics", {})  # by the name of a checkpoint
        self.metrics = {name: metrics for name, metrics in saved.items() if _NAME.fullmatch(name)}

    def checkpoint(self, state: ForkState) -> Path:
        """The folder of a state."""
        return self.folder / "checkpoints" / f"{state[0]}-{state[1]}"

    def metrics_of(self, state: ForkState) -> dict[str, Any]:
        """What Ray knew about the trial at that state: plain numbers and words only."""
        return dict(self.metrics[self.checkpoint(state).name])

    def add_state(self, state: ForkState, source: Path, metrics: dict[str, Any]) -> None:
        """Link a checkpoint of Ray's into the study, where Ray does not delete it."""
        target = self.checkpoint(state)
        shutil.rmtree(target, ignore_errors=True)  # of an interrupted attempt
        shutil.copytree(source, target, copy_function=_link)
        self.metrics[target.name] = {k: v for k, v in metrics.items() if isinstance(v, bool | int | float | str)}
        self.save()

    def keep_only(self, states: set[ForkState]) -> None:
        """Delete all other states."""
        wanted = {self.checkpoint(state).name for state in states}
        unwanted = set(self.metrics) - wanted
        if not unwanted:
            return
        self.metrics = {name: metrics for name, metrics in self.metrics.items() if name in wanted}
        self.save()
        for name in unwanted:
            shutil.rmtree(self.folder / "checkpoints" / name, ignore_errors=True)

    def save(self) -> None:
        """Write the file."""
        data = {"trials": self.count, "forks": self.fork_of, "metrics": self.metrics}
        write_atomically(self.path, lambda file: file.write(json.dumps(data).encode()))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
