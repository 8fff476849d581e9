"""The schedule that a study found, run once from the start as a plain training.

A replay need not end where the winner did: clones saw other batches from the step they were cloned at, and the winner
was the best of several.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table

from paceline.errors import TrainingError
from paceline.runner import build
from paceline.traces import Schedule
from paceline.training import values_by_weights
from paceline.views.data import StudyView
from paceline.views.format import format_number

ROWS = 10


class Replayed(NamedTuple):
    """What a plain training showed, by weights."""

    steps: list[int]
    values: dict[str, list[float]]


def replayed(make_training: Callable[[], Any], schedule: Schedule, console: Console | None = None) -> Replayed:
    """Train from the start to the end; a bar shows how far it is where the console is a terminal."""
    training = build(make_training)
    found = Replayed([], {})
    shown = Progress(console=console, transient=True) if console is not None and console.is_terminal else None
    with shown or nullcontext():
        bar = shown.add_task("replay", total=schedule.steps) if shown is not None else None
        try:
            for step, value in training.advance(schedule, schedule.steps):
                found.steps.append(int(step))
                for of, x in values_by_weights(value).items():
                    found.values.setdefault(of, []).append(float(x))
                if shown is not None and bar is not None:
                    shown.update(bar, completed=step)
        except Exception as error:
            at = found.steps[-1] if found.steps else 0
            raise TrainingError(f"the training raised {type(error).__name__} after step {at:,}: {error}") from error
    if not found.steps:
        raise TrainingError(f"the training yielded nothing up to step {schedule.steps:,}: it must yield (step, value)")
    return found


def comparison(view: StudyView, fork: int, again: Replayed) -> RenderableType:
    """A few steps of both runs side by side, and how they ended."""
    steps, values = view.whole_run(fork)
    of = next((of for of in (view.weights, *values) if of in again.values and of in values), None)
    if of is None:
        return f"nothing to compare: the study saw {', '.join(values)} values, the replay {', '.join(again.values)}"
    seen, now = dict(zip(steps, values[of], strict=True)), dict(zip(again.steps, again.values[of], strict=True))
    common = sorted(seen.keys() & now.keys())
    picked = [common[round(i * (len(common) - 1) / (ROWS - 1))] for i in range(ROWS)] if len(common) > ROWS else common
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("step", f"study, fork {fork}", "replay"):
        table.add_column(name, justify="right")
    for step in picked:
        table.add_row(f"{step:,}", format_number(seen[step]), format_number(now[step]))
    ends, stood = (
        [f"{of} {format_number(column[-1])}" for of, column in run.items()] for run in (again.values, values)
    )
    same = bool(common) and all(seen[step] == now[step] for step in common)
    advice = "the fork was the best of several, and clones see other batches: a replay can end a little behind"
    return Group(
        f"values of the {of} weights",
        table,
        f"ended at {', '.join(ends)}; fork {fork} stood at {', '.join(stood)} at step {steps[-1]:,}",
        "the same run, value for value" if same else advice,
    )
