"""A family of tasks in words and tables: its runs as they come, and the answer for each task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from paceline.study import Decided, Event, Report
from paceline.study.wording import describe, describe_all, describe_failure
from paceline.traces import Schedule
from paceline.views.data import StudyView, bands_of
from paceline.views.words import number, share

SHOWN_RATES = 8


def family_in_words(view: StudyView) -> str:
    """What the study was asked for, in one line."""
    s: dict[str, Any] = view.settings
    strategy, (low, high) = s["strategy"], s["lr"]
    base = strategy["base"]["name"].replace("_", "-")
    kind = "rates" if base == "constant" else f"multipliers of a {base} base"
    known = f"; {s['known']['runs']} runs known beforehand: {_sources(strategy['known'])}" if "known" in s else ""
    judged = f"judged by {view.of} weights, {'larger' if s['mode'] == 'max' else 'smaller'} is better"
    return (
        f"{len(view.tasks)} tasks; schedules of {strategy['intervals']} {kind} from {low:g} to {high:g}; "
        f"{runs_in_words(strategy['budget'], view.steps)}; {judged}; seed {s['seed']}{known}"
    )


def _sources(sources: dict[str, str]) -> str:
    return ", ".join(f"{name!r} ({source})" for name, source in sources.items())


def runs_in_words(budget: int, steps: int) -> str:
    """What a family takes: "20 runs of 1,000 steps in all"."""
    return f"{budget} runs of {steps:,} steps in all"


def run_lines(event: Event, view: StudyView) -> list[str]:
    """The plain lines of an event, none where it says nothing new."""
    match event:
        case Decided():
            ends = [
                f"run {n} is expected to end at {number(b.median)} ({number(b.low)} to {number(b.high)})"
                for n, b in bands_of(event.details).items()
            ]
            return [f"decision {event.round}: {'; '.join([*describe_all(event.reasons), *ends])}"]
        case Report() if event.failure is not None:
            task, why = view.fork(event.fork).task, describe_failure(event.failure)
            return [f"run {event.fork} of task {task!r} failed at step {event.stop:,}: {why}"]
        case Report():
            run = view.fork(event.fork)
            return [f"run {event.fork} of task {run.task!r} ended at {number(view.value(run))}; {share(view)} done"]
        case _:
            return []


def rates_of(schedule: Schedule) -> str:
    """One rate, or multiplier, per interval."""
    rates = [number(float(rate)) for rate in schedule.multipliers]
    return ", ".join(rates if len(rates) <= SHOWN_RATES else [*rates[: SHOWN_RATES - 1], "...", rates[-1]])


def answers_table(view: StudyView) -> Table:
    """One line per task: the schedule to use, what to expect of it, and the best run that was made."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    strategy = view.settings["strategy"]
    kind = "rates" if strategy["base"]["name"] == "constant" else "multipliers"
    for name in ("task", f"answer: {kind} of {strategy['intervals']} intervals", "forecast of its end"):
        table.add_column(name, no_wrap=name == "task")
    for name in ("best run", "its last 5 values", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for task, answer in view.answers.items():
        best = view.best_runs.get(task)
        table.add_row(
            task,
            rates_of(answer.schedule),
            f"{number(answer.median)} ({number(answer.low)} to {number(answer.high)})",
            "-" if best is None else str(best.fork),
            "-" if best is None else number(best.value),
            f"{answer.runs}" + (f", {answer.failed} failed" if answer.failed else ""),
        )
    return table


def places_in_words(embedding: "dict[str, np.ndarray]") -> list[str]:
    """Which task each is most like, by where the model put them."""
    names = list(embedding)
    if len(names) < 3 or not len(embedding[names[0]]):
        return []
    at = np.array([embedding[name] for name in names])
    gaps = np.linalg.norm(at[:, None] - at[None], axis=-1) + np.diag(np.full(len(names), np.inf))
    pairs = [f"{name!r} is nearest to {names[int(gaps[i].argmin())]!r}" for i, name in enumerate(names)]
    return [f"by the model {', '.join(pairs)}"]


def family_result(view: StudyView, path: Path) -> "list[str | RenderableType]":
    """How a family ended, or how it stands, and what to do next."""
    if view.finished is None:
        made = sum(fork.stop is None for fork in view.forks)
        best = [f"{task!r} {number(run.value)} (run {run.fork})" for task, run in view.best_runs.items()]
        standing = f"; best so far: {', '.join(best)}" if best else ""
        return [f"not over: {made} of {view.settings['strategy']['budget']} runs made{standing}"]
    if not view.answers:
        return [f"no run reached the end: {describe(view.decisions[-1].reasons[0])}"]
    bare = [task for task in view.answers if task not in view.best_runs]
    return [
        answers_table(view),
        *(f"no run of task {task!r} reached the end: its answer is what the other tasks say" for task in bare),
        *places_in_words(view.embedding),
        f"{view.done_steps:,} steps in all; states of the best runs: {path / 'checkpoints'}",
        f"to use a schedule elsewhere: paceline export {path} --task {_quoted(view.tasks)} --format python",
    ]


def _quoted(tasks: Sequence[str]) -> str:
    return repr(tasks[0]) if " " in tasks[0] else tasks[0]
