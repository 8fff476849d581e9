"""What a decision about a family records for views, as plain data (docs/journal.md)."""

from collections.abc import Sequence
from typing import Any

import torch

from paceline.model import TraceModel
from paceline.strategy.base import History
from paceline.strategy.details import round_floats
from paceline.strategy.multitask.family import Answer, Family
from paceline.strategy.multitask.infill import InfillChoice
from paceline.strategy.multitask.space import Space
from paceline.study import Interval
from paceline.traces import Trace

FORECAST_DRAWS = 200


def rate_numbers(space: Space, x: Sequence[float]) -> dict[str, Any]:
    """The rates of a run, and whether they are multipliers of a base."""
    schedule = space.schedule(list(x))
    return {"rates": schedule.multipliers.tolist(), "multipliers": schedule.tuned_base is not None}


def final_forecasts(model: TraceModel, history: History, intervals: Sequence[Interval]) -> list[dict[str, Any]]:
    """The 90 % band of each run's final value."""
    bands = list[dict[str, Any]]()
    for each in intervals:
        generator, task = torch.Generator().manual_seed(each.fork), history.goal.tasks[each.task]
        forecast = model.forecast(each.schedule, [each.stop], task=task, draws=FORECAST_DRAWS, generator=generator)
        low, high = (float(column[-1]) for column in forecast.band(0.9))
        band = {"low": [low], "median": [float(forecast.median[-1])], "high": [high]}
        weights = history.goal.objective.weights
        bands.append({"fork": each.fork, "weights": weights, "steps": [each.stop], **band})
    return round_floats(bands)


def infill_details(intervals: Sequence[Interval], choices: Sequence[InfillChoice]) -> list[dict[str, Any]]:
    """What each run was expected to teach when it was chosen."""
    return round_floats(
        [
            {"fork": each.fork, "before": choice.before, "after": choice.after, "rivals": choice.rivals}
            for each, choice in zip(intervals, choices, strict=True)
        ]
    )


def answer_details(task: str, answer: Answer, traces: Sequence[Trace]) -> dict[str, Any]:
    """An answer with its whole schedule."""
    own = [trace for trace in traces if trace.task == task]
    low, _, high = sorted(answer.quantiles)
    numbers = round_floats({"median": answer.quantiles[1], "low": low, "high": high})
    counts = {"runs": len(own), "failed": sum(trace.failed for trace in own)}
    return {"task": task, "schedule": answer.schedule.to_json(), **numbers, **counts}


def embedding_details(family: Family, model: TraceModel) -> list[dict[str, Any]]:
    """The location of each task, in the family's order."""
    locations = model.task_embedding
    return round_floats([{"task": task, "at": locations[task]} for task in family.all_tasks])
