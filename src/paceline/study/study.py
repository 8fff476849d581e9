"""A study folder, to read: settings, forks with their traces, decisions, the result."""

import json
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from paceline.errors import JournalError
from paceline.files import write_whole
from paceline.study.answers import BestRun, TaskAnswer, answers_in, best_in, embedding_in
from paceline.study.events import FORMAT, Decided, Event, Failed, Finished, Observed, Proposed
from paceline.study.folders import studies_below
from paceline.study.former_settings import without_former_settings
from paceline.study.journal import read_journal
from paceline.study.recorded import recorded_traces
from paceline.traces import Objective, Trace
from paceline.traces.objective import Of

if TYPE_CHECKING:
    from paceline.views.plots import Plots

MOST_NAMED = 50  # studies of a folder that is none itself


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """What a study folder says. Reading it never changes it, also while it is being written.

    A family of tasks has answers, best runs and an embedding; a study of one run has none of these.

    Args:
        path: the folder.
        settings: what the study was asked for.
        events: what happened so far.
    """

    path: Path
    settings: dict[str, Any]
    events: tuple[Event, ...]

    def __repr__(self) -> str:
        """One line, since events are many."""
        return f"Study({str(self.path)!r}, {len(self.events)} events, {'finished' if self.finished else 'not over'})"

    @classmethod
    def open(cls, path: "str | Path") -> "Study":
        """Read a study folder."""
        folder = Path(path)
        settings = read_settings(folder)
        return cls(folder, settings["settings"], tuple(read_journal(folder / "journal.jsonl")))

    @property
    def finished(self) -> Finished | None:
        """How it ended, None while it has not."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Finished) else None

    @property
    def decisions(self) -> list[Decided]:
        """The decisions, in order."""
        return [event for event in self.events if isinstance(event, Decided)]

    @property
    def proposals(self) -> list[Proposed]:
        """The proposals, in order."""
        return [event for event in self.events if isinstance(event, Proposed)]

    @property
    def reports(self) -> list["Observed | Failed"]:
        """What came back, in order."""
        return [event for event in self.events if isinstance(event, Observed | Failed)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that are tuned; empty for a study of one run."""
        return tuple(self.settings.get("tasks", ()))

    @property
    def answers(self) -> dict[str, TaskAnswer]:
        """The schedule for each task of a family and what to expect of it; empty while the study is not over."""
        return answers_in(self.events)

    @property
    def best(self) -> dict[str, BestRun]:
        """The best run of each task of a family that has one so far."""
        return best_in(self.events)

    @property
    def embedding(self) -> dict[str, Float[np.ndarray, "dims"]]:
        """Where the model of a family saw each task: tasks near each other behave alike."""
        return embedding_in(self.events)

    def traces(self, of: "Of | None" = None) -> list[Trace]:
        """What was observed, fork by fork; of raw weights where these were observed, unless `of` says otherwise."""
        observed = {column for report in self.reports for column in report.values}
        wanted = of or ("raw" if "raw" in observed or not observed else "averaged")
        return recorded_traces(self.settings, self.events, Objective(self.settings.get("mode", "min"), of=wanted))

    @property
    def plot(self) -> "Plots":
        """Its figures: `study.plot.lineage()`, or `study.plot()` for the traces; they need the extra `plot`."""
        from paceline.views.plots import Plots

        return Plots.of(self)

    def checkpoint(self, fork: int, step: int) -> Path:
        """Where the state of a fork at a step lies, if it is still there."""
        return checkpoint_path(self.path, fork, step)


def checkpoint_path(folder: Path, fork: int, step: int) -> Path:
    """checkpoints/<fork>-<step>.pt."""
    return folder / "checkpoints" / f"{fork}-{step}.pt"


def write_settings(folder: Path, settings: dict[str, Any], seed: int) -> None:
    """Write study.json, once."""
    data = {
        "format": FORMAT,
        "paceline": _version("paceline"),
        "versions": {"python": platform.python_version(), "torch": _version("torch"), "numpy": _version("numpy")},
        "seed": seed,
        "settings": settings,
    }
    text = json.dumps(data, indent=1) + "\n"
    write_whole(folder / "study.json", lambda file: file.write(text.encode()))


def read_settings(folder: Path) -> dict[str, Any]:
    """Read study.json, or say what is wrong with it."""
    path = folder / "study.json"
    if not path.exists():
        below = [found.relative_to(folder).as_posix() for found in studies_below(folder)]
        more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
        do = f"it holds studies, name one: {', '.join(below[:MOST_NAMED])}{more}" if below else "check the path"
        raise JournalError(f"{folder} is no study: expected a folder with study.json, {do}")
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        written = int(data["format"])
        if written <= FORMAT:
            data["settings"] = without_former_settings(dict(data["settings"]))
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path} cannot be read ({error}): it was edited or damaged, restore it") from error
    if written > FORMAT:
        raise JournalError(
            f"{path} was written by paceline {data.get('paceline')} in format {written}, this version reads up to "
            f"{FORMAT}: install a newer paceline"
        )
    return data


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
