"""A running study in other people's loggers: `tune(..., on_event=events.tensorboard("logs"))`.

One small core, `Teller`, turns an event into what every logger can take in: numbers of a fork at steps, and words. A
logger is a few lines more. Nothing comes back from it, so it cannot change a decision.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.study import Cloned, Created, Decided, Dropped, Event, Failed, Finished, Observed, Proposed, Study
from paceline.traces import Schedule

OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Told:
    """Numbers of one fork at one step, or words where `fork` is None."""

    step: int
    fork: int | None = None
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    words: str = ""


class Teller:
    """What events say, one after the other.

    Numbers are named `loss` (`value`, where more is better), `loss averaged` and `lr`.
    """

    def __init__(self) -> None:
        self.name = "loss"
        self.schedules: dict[int, Schedule] = {}

    def told(self, event: Event) -> list[Told]:
        """What to write down of an event."""
        match event:
            case Created():
                self.name = "loss" if event.settings.get("mode", "min") == "min" else "value"
            case Proposed():
                self.schedules[event.fork] = event.schedule
            case Observed():
                return self._numbers(event)
            case Failed():
                return [*self._numbers(event), Told(event.step, words=f"fork {event.fork} failed: {event.reason}")]
            case Decided():
                return [Told(event.step, words=reason) for reason in event.reasons]
            case Cloned():
                return [Told(event.step, words=f"fork {event.fork} begins as a clone of fork {event.parent}")]
            case Dropped():
                return [Told(event.step, words=f"fork {event.fork} is dropped: {event.reason}")]
            case Finished():
                who = f"fork {event.fork} won, at {event.value} ({event.of} weights)"
                return [Told(event.step, words="nobody won" if event.fork is None else who)]
            case _:
                pass
        return []

    def _numbers(self, event: "Observed | Failed") -> list[Told]:
        schedule, found = self.schedules.get(event.fork), list[Told]()
        for i, step in enumerate(event.steps):
            rate = {} if schedule is None else {"lr": float(schedule(max(step - 1, 0)))}  # of the update that led here
            named = {self.name if of == "raw" else f"{self.name} {of}": v[i] for of, v in event.values.items()}
            numbers = {name: value for name, value in named.items() if math.isfinite(value)}
            found.append(Told(step, event.fork, {**numbers, **rate}))
        return found


class Writer(ABC):
    """A logger, as far as it is needed here."""

    @abstractmethod
    def write(self, told: Sequence[Told]) -> None:
        """Write down what one event said."""

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
        self.writer, self.teller = writer, Teller()
        if study is not None and (Path(study) / "journal.jsonl").exists():
            for event in Study.open(study).events:
                self.teller.told(event)

    def __call__(self, event: Event) -> None:
        """Write down what an event says."""
        told = self.teller.told(event)
        if told:
            self.writer.write(told)
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


def lines(write: Callable[[str], None] = print) -> OnEvent:
    """Say what is decided, in words, as it is decided: for scripts and notebooks.

    Args:
        write: told each line.
    """
    teller = Teller()

    def heard(event: Event) -> None:
        if isinstance(event, Decided | Failed):
            for told in teller.told(event):
                if told.words:
                    write(_dated(told))

    return heard


def _dated(told: Told) -> str:
    """Words in a line, with their step."""
    return f"step {told.step:,}: {told.words}"


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

    def write(self, told: Sequence[Told]) -> None:
        for line in told:
            name = "decisions" if line.fork is None else f"fork {line.fork}"
            if name not in self.open:
                self.open[name] = self.make(str(self.folder / name))
            if line.words:
                self.open[name].add_text("decisions", line.words, line.step)  # pyright: ignore[reportUnknownMemberType]
            for tag, value in line.numbers.items():
                self.open[name].add_scalar(tag, value, line.step)  # pyright: ignore[reportUnknownMemberType]
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

    def write(self, told: Sequence[Told]) -> None:
        now = int(time.time() * 1000)
        metrics = [
            self.metric(f"fork {line.fork}/{tag}", value, now, line.step)
            for line in told
            for tag, value in line.numbers.items()
        ]
        for begin in range(0, len(metrics), 1000):  # as many as one call may hold
            self.client.log_batch(self.run, metrics=metrics[begin : begin + 1000])
        self.decisions += [_dated(line) for line in told if line.words]

    def close(self) -> None:
        self.client.log_text(self.run, "\n".join(self.decisions), "decisions.txt")
        self.client.set_terminated(self.run)


class _WandB(Writer):
    def __init__(self, init: dict[str, Any]) -> None:
        import wandb

        settings: dict[str, Any] = {"project": "paceline", **init}
        self.run = wandb.init(**settings)
        self.named = set[str]()

    def write(self, told: Sequence[Told]) -> None:
        for line in told:
            name = "decisions" if line.fork is None else f"fork {line.fork}"
            if name not in self.named:  # forks go through the same steps in turn, which its own count does not allow
                self.named.add(name)
                self.run.define_metric(f"{name}/step")
                self.run.define_metric(f"{name}/*", step_metric=f"{name}/step")
            numbers = line.numbers if line.fork is not None else {"words": line.words}
            self.run.log({f"{name}/step": line.step, **{f"{name}/{tag}": value for tag, value in numbers.items()}})

    def close(self) -> None:
        self.run.finish()
