"""What a decision about a family says: reasons in words, forecasts, and answers as plain data."""

from collections.abc import Sequence
from typing import Any

import torch

from paceline.model import TraceModel
from paceline.strategy.base import History, Interval
from paceline.strategy.details import rounded
from paceline.strategy.multitask.family import Answer
from paceline.strategy.multitask.infill import Choice
from paceline.strategy.multitask.space import Space
from paceline.traces import Trace

DRAWS, SHOWN_RIVALS = 200, 3


def rates_in_words(space: Space, x: Sequence[float]) -> str:
    """The rates of a run, or its multipliers."""
    schedule = space.schedule(list(x))
    kind = "rates" if schedule.tuned_base is None else "multipliers"
    return f"{kind} {', '.join(f'{rate:.3g}' for rate in schedule.multipliers)}"


def choice_in_words(fork: int, choice: Choice, space: Space) -> str:
    """Which run, what it is expected to teach, and what the best run of each other task would."""
    others = {task: left for task, left in choice.rivals.items() if task != choice.run.task}
    ranked = sorted(others.items(), key=lambda item: item[1])[:SHOWN_RIVALS]
    words = ", ".join(f"{task!r} {left:.2e}" for task, left in ranked)
    return (
        f"run {fork} of task {choice.run.task!r} at {rates_in_words(space, choice.run.x)}: the variance at the best "
        f"schedules is expected to fall from {choice.before:.2e} to {choice.after:.2e}"
        + (f"; with a run of another task to: {words}" if words else "")
    )


def expected_ends(model: TraceModel, history: History, proposals: Sequence[Interval]) -> list[dict[str, Any]]:
    """The 90 % band of each run's final value."""
    bands = list[dict[str, Any]]()
    for p in proposals:
        random, task = torch.Generator().manual_seed(p.fork), history.goal.tasks[p.task]
        ahead = model.forecast(p.schedule, [p.stop], task=task, draws=DRAWS, generator=random)
        low, high = (float(column[-1]) for column in ahead.band(0.9))
        row = {"fork": p.fork, "steps": [p.stop], "low": [low], "median": [float(ahead.median[-1])], "high": [high]}
        bands.append(row)
    return bands


def answer_details(task: str, answer: Answer, traces: Sequence[Trace]) -> dict[str, Any]:
    """An answer as the journal holds it: the schedule in full."""
    own = [trace for trace in traces if trace.task == task]
    low, _, high = sorted(answer.quantiles)
    numbers = rounded({"median": answer.quantiles[1], "low": low, "high": high})
    counts = {"runs": len(own), "failed": sum(trace.failed for trace in own)}
    return {"task": task, "schedule": answer.schedule.to_json(), **numbers, **counts}
