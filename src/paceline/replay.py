"""The schedule that a study found, run once from the start as a plain training.

A replay can end at another value than the winner. Clones trained on other batches from the step they were cloned at,
and the winner was the best of several.
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
from paceline.views import StudyView, format_number

COMPARED_STEPS = 10


class ReplayRun(NamedTuple):
    """What a plain training observed: steps, and the values at them by weights."""

    steps: list[int]
    values: dict[str, list[float]]


def replay_schedule(make_training: Callable[[], Any], schedule: Schedule, console: Console | None = None) -> ReplayRun:
    """Train under a schedule from the start to the end. A terminal shows a progress bar."""
    training = build(make_training)
    run = ReplayRun([], {})
    progress = Progress(console=console, transient=True) if console is not None and console.is_terminal else None
    with progress or nullcontext():
        bar = progress.add_task("replay", total=schedule.steps) if progress is not None else None
        try:
            for step, value in training.advance(schedule, schedule.steps):
                run.steps.append(int(step))
                for weights, number in values_by_weights(value).items():
                    run.values.setdefault(weights, []).append(float(number))
                if progress is not None and bar is not None:
                    progress.update(bar, completed=step)
        except Exception as error:
            last = run.steps[-1] if run.steps else 0
            raise TrainingError(f"the training raised {type(error).__name__} after step {last:,}: {error}") from error
    if not run.steps:
        raise TrainingError(f"the training yielded nothing up to step {schedule.steps:,}: it must yield (step, value)")
    return run


def compare_runs(view: StudyView, fork: int, replay: ReplayRun) -> RenderableType:
    """A few steps of the fork and of the replay side by side, and how both ended."""
    steps, values = view.whole_run(fork)
    weights = next((name for name in (view.weights, *values) if name in replay.values and name in values), None)
    if weights is None:
        return f"nothing to compare: the study has {', '.join(values)} values, the replay {', '.join(replay.values)}"
    original = dict(zip(steps, values[weights], strict=True))
    again = dict(zip(replay.steps, replay.values[weights], strict=True))
    common = sorted(original.keys() & again.keys())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("step", f"study, fork {fork}", "replay"):
        table.add_column(name, justify="right")
    for step in _spread(common):
        table.add_row(f"{step:,}", format_number(original[step]), format_number(again[step]))
    is_same = bool(common) and all(original[step] == again[step] for step in common)
    advice = "the fork was the best of several, and clones train on other batches: a replay can end a little worse"
    return Group(
        f"values of the {weights} weights",
        table,
        f"the replay ended at {_last(replay.values)}; fork {fork} at {_last(values)} at step {steps[-1]:,}",
        *_best_moments(view, replay),
        "the same run, value for value" if is_same else advice,
    )


def _spread(steps: list[int]) -> list[int]:
    """At most `COMPARED_STEPS` of them, evenly spread."""
    if len(steps) <= COMPARED_STEPS:
        return steps
    return [steps[round(row * (len(steps) - 1) / (COMPARED_STEPS - 1))] for row in range(COMPARED_STEPS)]


def _best_moments(view: StudyView, replay: ReplayRun) -> list[str]:
    """The best moments of both, if the study kept that of its run."""
    kept = view.kept
    if kept is None or kept.weights not in replay.values:
        return []
    column = replay.values[kept.weights]
    value = (max if view.settings.get("mode") == "max" else min)(column)
    step = replay.steps[column.index(value)]
    return [
        f"the replay was best at step {step:,}: {format_number(value)} ({kept.weights} weights); "
        f"fork {kept.fork} at step {kept.step:,}: {format_number(kept.value)}"
    ]


def _last(values: dict[str, Any]) -> str:
    return ", ".join(f"{weights} {format_number(column[-1])}" for weights, column in values.items())
