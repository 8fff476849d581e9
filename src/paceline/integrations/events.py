"""A running study in other people's loggers: `tune(..., on_event=events.tensorboard("logs"))`.

One small core, `EventFormatter`, turns an event into records that every logger understands: numbers of a fork at a
step, and text. A logger is a few lines more. Nothing comes back from it, so it cannot change a decision.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.errors import JournalError
from paceline.study import (
    Decided,
    Dropped,
    Event,
    Finished,
    Report,
    Study,
    StudyState,
    describe,
    describe_all,
    describe_failure,
    kept_state,
)
from paceline.traces import Objective

OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """Numbers of one fork at one step, or a sentence if `fork` is None."""

    step: int
    fork: int | None = None
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    text: str = ""


class EventFormatter:
    """Turns events into records for a logger.

    Numbers are named `loss` (`value`, if more is better), `loss averaged` and `lr`; `best loss` is the best value of
    either weights so far, at the steps whose state was kept.

    Args:
        past: earlier events of a study that is continued. They tell at which rates its forks run.
    """

    def __init__(self, past: Iterable[Event] = ()) -> None:
        self.state = StudyState.of(past)

    def records(self, event: Event) -> list[LogRecord]:
        """The records of the next event."""
        with suppress(JournalError):  # the hook was added to a continued study without its past
            self.state.append(event)
        match event:
            case Report() if event.failure is not None:
                verb = "ended" if event.failure.is_turn else "failed"
                text = f"fork {event.fork} {verb}: {describe_failure(event.failure)}"
                return [*self._numbers(event), LogRecord(event.stop, text=text)]
            case Report():
                return self._numbers(event)
            case Decided():
                return [LogRecord(event.step, text=text) for text in describe_all(event.reasons)]
            case Dropped():
                return [LogRecord(event.step, text=f"fork {event.fork} is dropped: {describe(event.reason)}")]
            case Finished():
                return [LogRecord(event.step, text=_winner(event))]
            case _:
                return []

    def _numbers(self, report: Report) -> list[LogRecord]:
        fork = self.state.forks.get(report.fork)
        schedule = None if fork is None else self.state.latest_interval(fork).schedule
        label = "loss" if self.state.settings.get("mode", "min") == "min" else "value"
        records = list[LogRecord]()
        for row, step in enumerate(report.steps):
            rate = {} if schedule is None else {"lr": float(schedule(max(step - 1, 0)))}  # of the latest update
            named = {label if of == "raw" else f"{label} {of}": column[row] for of, column in report.values.items()}
            numbers = {name: value for name, value in named.items() if math.isfinite(value)}
            if step == report.kept:
                sign = Objective(self.state.settings.get("mode", "min")).sign
                numbers[f"best {label}"] = kept_state(report, sign).value
            records.append(LogRecord(step, report.fork, {**numbers, **rate}))
        return records


def _winner(end: Finished) -> str:
    """Who won, and with what."""
    if end.fork is None:
        return "no fork won"
    winner = f"fork {end.fork} won with value {end.value} ({end.weights} weights)"
    return winner if end.last is None else f"{winner} at step {end.step:,}; it ended with {end.last}"


class Writer(ABC):
    """A logger, as far as it is needed here."""

    @abstractmethod
    def write(self, records: Sequence[LogRecord]) -> None:
        """Write the records of one event."""

    @abstractmethod
    def close(self) -> None:
        """The study is over."""


class Log:
    """An `on_event` hook that writes into a logger, and closes it with the study.

    Args:
        writer: the logger.
        study: folder of a study that is continued, whose earlier events say at which rates its forks run.
    """

    def __init__(self, writer: Writer, study: "str | Path | None" = None) -> None:
        exists = study is not None and (Path(study) / "journal.jsonl").exists()
        self.writer, self.formatter = writer, EventFormatter(Study.open(study).events if exists and study else ())

    def __call__(self, event: Event) -> None:
        """Write an event to the logger."""
        records = self.formatter.records(event)
        if records:
            self.writer.write(records)
        if isinstance(event, Finished):
            self.close()

    def close(self) -> None:
        """Close the logger before the study is over, where it was given up."""
        self.writer.close()


def each(*hooks: OnEvent) -> OnEvent:
    """One hook that calls several in turn."""

    def call(event: Event) -> None:
        for hook in hooks:
            hook(event)

    return call


def _line(record: LogRecord) -> str:
    """The text of a record, with its step."""
    return f"step {record.step:,}: {record.text}"


def tensorboard(folder: "str | Path", *, study: "str | Path | None" = None) -> Log:
    """Write to TensorBoard: a run for each fork, so that forks share their charts; decisions are the text of a run."""
    return Log(_TensorBoard(Path(folder)), study)


def mlflow(
    *,
    experiment: str = "paceline",
    run_name: str | None = None,
    tracking_uri: str | None = None,
    study: "str | Path | None" = None,
) -> Log:
    """Write to MLflow, into one run with metrics `fork 3/loss`; decisions are the artifact decisions.txt."""
    return Log(_MLflow(experiment, run_name, tracking_uri), study)


def wandb(*, study: "str | Path | None" = None, **init: Any) -> Log:
    """Write to Weights & Biases, into a run made by `wandb.init(**init)`, with metrics `fork 3/loss`."""
    return Log(_WandB(init), study)


class _TensorBoard(Writer):
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self.folder, self.make, self.open = folder, SummaryWriter, dict[str, SummaryWriter]()

    def write(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            name = "decisions" if record.fork is None else f"fork {record.fork}"
            if name not in self.open:
                self.open[name] = self.make(str(self.folder / name))
            if record.text:
                self.open[name].add_text("decisions", record.text, record.step)  # pyright: ignore[reportUnknownMemberType]
            for tag, value in record.numbers.items():
                self.open[name].add_scalar(tag, value, record.step)  # pyright: ignore[reportUnknownMemberType]
        for writer in self.open.values():
            writer.flush()

    def close(self) -> None:
        while self.open:
            self.open.popitem()[1].close()


class _MLflow(Writer):
    def __init__(self, experiment: str, run_name: str | None, tracking_uri: str | None) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self.metric, self.client = Metric, MlflowClient(tracking_uri=tracking_uri)
        known = self.client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else self.client.create_experiment(experiment)
        self.run = self.client.create_run(number, run_name=run_name).info.run_id
        self.decisions = list[str]()

    def write(self, records: Sequence[LogRecord]) -> None:
        now = int(time.time() * 1000)
        metrics = [
            self.metric(f"fork {record.fork}/{tag}", value, now, record.step)
            for record in records
            for tag, value in record.numbers.items()
        ]
        for begin in range(0, len(metrics), 1000):  # as many as one call may hold
            self.client.log_batch(self.run, metrics=metrics[begin : begin + 1000])
        self.decisions += [_line(record) for record in records if record.text]

    def close(self) -> None:
        self.client.log_text(self.run, "\n".join(self.decisions), "decisions.txt")
        self.client.set_terminated(self.run)


class _WandB(Writer):
    def __init__(self, init: dict[str, Any]) -> None:
        import wandb

        settings: dict[str, Any] = {"project": "paceline", **init}
        self.run = wandb.init(**settings)
        self.named = set[str]()

    def write(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            name = "decisions" if record.fork is None else f"fork {record.fork}"
            if name not in self.named:  # forks go through the same steps in turn, which its own count does not allow
                self.named.add(name)
                self.run.define_metric(f"{name}/step")
                self.run.define_metric(f"{name}/*", step_metric=f"{name}/step")
            numbers = record.numbers if record.fork is not None else {"text": record.text}
            self.run.log({f"{name}/step": record.step, **{f"{name}/{tag}": value for tag, value in numbers.items()}})

    def close(self) -> None:
        self.run.finish()
