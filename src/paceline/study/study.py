"""A study folder, to read: settings, events, traces, the result."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from paceline.study.answers import BestRun, TaskAnswer, answers_in, best_in, embedding_in
from paceline.study.checkpoints import Checkpoints
from paceline.study.events import Decided, Event, Finished, Interval, Report
from paceline.study.fork_traces import fork_traces
from paceline.study.journal import read_journal
from paceline.study.settings import read_settings
from paceline.study.state import StudyState
from paceline.traces import Objective, Trace, Weights

if TYPE_CHECKING:
    from paceline.views import Plots


@dataclass(frozen=True, repr=False)
class Study:
    """The content of a study folder. Reading it never changes it, even while it is being written.

    A family of tasks has answers, best runs and an embedding. A study of one run has none of these.

    Args:
        path: the folder.
        settings: what the study was set up with.
        events: what has happened so far.
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

    @cached_property
    def state(self) -> StudyState:
        """What the events add up to."""
        return StudyState.of(self.events)

    @property
    def finished(self) -> Finished | None:
        """How it ended, None if it has not."""
        return self.state.finished

    @property
    def decisions(self) -> list[Decided]:
        """The decisions, in order."""
        return [self.state.decided(decision) for decision in self.state.decisions]

    @property
    def intervals(self) -> list[Interval]:
        """The intervals that decisions proposed, in order."""
        return [event for event in self.events if isinstance(event, Interval)]

    @property
    def reports(self) -> list[Report]:
        """The reports on intervals, in order."""
        return [event for event in self.events if isinstance(event, Report)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that are tuned; empty for a study of one run."""
        return tuple(self.settings.get("tasks", ()))

    @property
    def answers(self) -> dict[str, TaskAnswer]:
        """The schedule for each task of a family and its forecast; empty until the study is over."""
        return answers_in(self.state)

    @property
    def best(self) -> dict[str, BestRun]:
        """The best run of each task of a family that has one so far."""
        return best_in(self.state)

    @property
    def embedding(self) -> dict[str, Float[np.ndarray, "dims"]]:
        """Where the model of a family places each task: tasks near each other behave alike."""
        return embedding_in(self.state)

    def traces(self, weights: "Weights | None" = None) -> list[Trace]:
        """What was observed, fork by fork.

        Args:
            weights: "raw" or "averaged"; by default raw weights if they were observed.
        """
        observed = {name for report in self.reports for name in report.values}
        read = weights or ("raw" if "raw" in observed or not observed else "averaged")
        return fork_traces(self.state, Objective(self.settings.get("mode", "min"), weights=read))

    @property
    def plot(self) -> "Plots":
        """Its figures: `study.plot.lineage()`, or `study.plot()` for the traces; they need the extra `plot`."""
        from paceline.views import Plots

        return Plots.of(self)

    def checkpoint(self, fork: int, step: int) -> Path:
        """Where the state of a fork at a step lies, if it is still there."""
        return Checkpoints.of_study(self.path).path(fork, step)
