"""A family of tasks as text and tables: its settings, its runs as they come in, and the answer for each task."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from paceline.study import Decided, Event, Report, describe, describe_all, describe_failure
from paceline.traces import Schedule
from paceline.views.data import StudyView
from paceline.views.format import format_number, format_progress, format_range
from paceline.views.projection import forecasts_by_fork

MAX_RATES = 8
"""Rates of a schedule that a table shows."""


def describe_family(view: StudyView) -> str:
    """The settings of a family, in one line."""
    settings: dict[str, Any] = view.settings
    strategy, (low, high) = settings["strategy"], settings["lr"]
    base = strategy["base"]["name"].replace("_", "-")
    rates = "rates" if base == "constant" else f"multipliers of a {base} base"
    known = ""
    if "known" in settings:
        known = f"; {settings['known']['runs']} runs known beforehand: {_known_sources(strategy['known'])}"
    direction = "larger" if settings["mode"] == "max" else "smaller"
    return (
        f"{len(view.tasks)} tasks; schedules of {strategy['intervals']} {rates} from {low:g} to {high:g}; "
        f"{describe_budget(view.budget, view.steps, view.costs)}; judged by {view.weights} weights, "
        f"{direction} is better; seed {settings['seed']}{_task_settings(strategy)}{known}"
    )


def _task_settings(strategy: Mapping[str, Any]) -> str:
    """Which tasks are wanted, what runs cost and what is known of the tasks; empty if nothing is set."""
    parts = list[str]()
    if "wanted" in strategy:
        parts.append(f"wanted: {', '.join(map(repr, strategy['wanted']))}")
    if "costs" in strategy:
        parts.append(f"costs: {', '.join(f'{task!r} {cost:g}' for task, cost in strategy['costs'].items())}")
    if "at" in strategy:
        parts.append(f"known coordinates: {', '.join(_coordinate_names(strategy))}")
    return "".join(f"; {part}" for part in parts)


def _coordinate_names(strategy: Mapping[str, Any]) -> list[str]:
    return sorted({name for given in strategy.get("at", {}).values() for name in given})


def _known_sources(sources: Mapping[str, str]) -> str:
    return ", ".join(f"{name!r} ({source})" for name, source in sources.items())


def describe_budget(budget: float, steps: int, costs: "Mapping[str, float] | None" = None) -> str:
    """The runs that a family makes: "20 runs of 1,000 steps in all", or what they may cost."""
    if costs:
        return f"runs of {steps:,} steps at a cost of {budget:g} in all"
    return f"{budget:g} runs of {steps:,} steps in all"


def run_lines(event: Event, view: StudyView) -> list[str]:
    """The lines of text about an event of a family; none if it adds nothing."""
    match event:
        case Decided():
            forecasts = [
                f"run {run} is expected to end at {format_range(band)}"
                for run, band in forecasts_by_fork(event.details, view.settings).items()
            ]
            return [f"decision {event.round}: {'; '.join([*describe_all(event.reasons), *forecasts])}"]
        case Report():
            run = view.fork(event.fork)
            name = f"run {event.fork} of task {run.task!r}"
            if event.failure is not None:
                return [f"{name} failed at step {event.stop:,}: {describe_failure(event.failure)}"]
            return [f"{name} ended at {format_number(view.value(run))}; {format_progress(view)} done"]
        case _:
            return []


def _rate_list(schedule: Schedule) -> str:
    """The rate, or the multiplier, of each interval."""
    rates = [format_number(float(rate)) for rate in schedule.multipliers]
    return ", ".join(rates if len(rates) <= MAX_RATES else [*rates[: MAX_RATES - 1], "...", rates[-1]])


def answers_table(view: StudyView) -> Table:
    """A row for each task: the schedule to use, the forecast of its final value, and the best run."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    strategy = view.settings["strategy"]
    rates = "rates" if strategy["base"]["name"] == "constant" else "multipliers"
    at: dict[str, dict[str, float]] = strategy.get("at", {})
    coordinates = _coordinate_names(strategy)
    for name in ("task", *coordinates, f"answer: {rates} of {strategy['intervals']} intervals", "forecast of its end"):
        table.add_column(name, no_wrap=name == "task")
    for name in ("best run", "its last 5 values", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for task, answer in view.answers.items():
        best = view.best_runs.get(task)
        table.add_row(
            task,
            *(f"{at.get(task, {}).get(name, np.nan):.12g}" for name in coordinates),
            _rate_list(answer.schedule),
            f"{format_number(answer.median)} ({format_number(answer.low)} to {format_number(answer.high)})",
            "-" if best is None else str(best.fork),
            "-" if best is None else format_number(best.value),
            f"{answer.runs}" + (f", {answer.failed} failed" if answer.failed else ""),
        )
    return table


def nearest_tasks(embedding: "Mapping[str, np.ndarray]") -> list[str]:
    """A sentence that names the nearest task of each task in the embedding; none for fewer than three tasks."""
    names = list(embedding)
    if len(names) < 3 or not len(embedding[names[0]]):
        return []
    locations = np.array([embedding[name] for name in names])
    distances = np.linalg.norm(locations[:, None] - locations[None], axis=-1)
    distances += np.diag(np.full(len(names), np.inf))
    pairs = [f"{name!r} is nearest to {names[int(distances[i].argmin())]!r}" for i, name in enumerate(names)]
    return [f"in the model {', '.join(pairs)}"]


def family_result(view: StudyView, path: Path) -> "list[str | RenderableType]":
    """The result of a family, or how far it is, and what to do next."""
    if view.finished is None:
        return [_progress(view)]
    if not view.answers:
        return [f"no run reached the end: {describe(view.decisions[-1].reasons[0])}"]
    without_run = [task for task in view.answers if task not in view.best_runs]
    return [
        answers_table(view),
        *(f"no run of task {task!r} reached the end: its answer comes from the other tasks" for task in without_run),
        *([] if "at" in view.settings["strategy"] else nearest_tasks(view.embedding)),
        f"{view.done_steps:,} steps in all; checkpoints of the best runs: {path / 'checkpoints'}",
        f"to use a schedule elsewhere: paceline export {path} --task {_quoted(view.tasks)} --format python",
    ]


def _progress(view: StudyView) -> str:
    runs = sum(fork.stop is None for fork in view.forks)
    of = "" if view.costs else f" of {view.budget:g}"
    best = ", ".join(f"{task!r} {format_number(run.value)} (run {run.fork})" for task, run in view.best_runs.items())
    best_so_far = f"; best so far: {best}" if best else ""
    cost = f" ({format_progress(view)})" if view.costs else ""
    return f"not over: {runs}{of} runs are done{cost}{best_so_far}"


def _quoted(tasks: Sequence[str]) -> str:
    """The first task, in quotes if the shell needs them."""
    return repr(tasks[0]) if " " in tasks[0] else tasks[0]
