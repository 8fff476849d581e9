"""Where a new task lies among those of its family, by its run so far: for decisions and for the journal."""

from dataclasses import replace
from typing import Any

from paceline.model import TaskPosterior, TraceModel, location_prior_of, principal_axes
from paceline.settings import NewTaskSettings
from paceline.strategy.base import History
from paceline.strategy.details import round_floats
from paceline.strategy.multitask import Family, embedding_details
from paceline.strategy.newtask.random_streams import POSTERIOR, PRIOR, generator
from paceline.study import Reason, because
from paceline.traces import Trace

JOURNALED_LOCATIONS = 40  # of those tried at a decision


def locate(
    model: TraceModel, task: str, history: History, end: int, interval: int, settings: NewTaskSettings
) -> TaskPosterior:
    """The posterior of the task's location by what its forks observed up to step `end`, where `interval` begins."""
    prior = location_prior_of(settings.prior, model)
    runs = [
        replace(head, name=f"{task} {trace.name}", task=task)  # a family may have runs of the same name
        for trace in history.traces()
        if interval and (head := head_until(trace, end)) is not None
    ]
    if not runs:
        return TaskPosterior.from_prior(model, task, prior, settings.locations, generator(history, PRIOR))
    return TaskPosterior.from_runs(
        model, task, runs, prior, settings.locations, generator(history, POSTERIOR + interval)
    )


def head_until(trace: Trace, step: int) -> Trace | None:
    """What was observed up to a step; None if that is nothing."""
    count = int((trace.steps <= step).sum())
    return trace.head(count) if count else None


def location_reason(model: TraceModel, posterior: TaskPosterior) -> Reason:
    """The nearest known task, how far it is, and how uncertain the location is."""
    tasks, gaps = model.encoder.tasks, model.task_distances(posterior.task, posterior.mean)
    nearest = int(gaps.argmin())
    return because(
        "location",
        task=posterior.task,
        nearest=tasks[nearest],
        distance=float(gaps[nearest]),
        spread=posterior.spread,
    )


def location_details(family: Family, model: TraceModel, posterior: TaskPosterior) -> dict[str, Any]:
    """The embedding, and the new task in it, on the principal axes of the known tasks."""
    embedding = model.posterior.hyper.embedding.numpy()
    axes = principal_axes(embedding)
    order = posterior.weights.argsort(descending=True)[:JOURNALED_LOCATIONS]
    return round_floats(
        {
            "embedding": embedding_details(family, model),
            "location": {
                "mean": posterior.mean.numpy() @ axes,
                "covariance": axes.T @ posterior.covariance.numpy() @ axes,
                "spread": posterior.spread,
                "samples": posterior.locations[order].numpy() @ axes,
                "weights": posterior.weights[order].numpy(),
            },
        }
    )
