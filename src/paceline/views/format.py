"""Numbers, progress, costs and schedules as text."""

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.study import BestState, format_number
from paceline.traces import Schedule
from paceline.views.data import Band, ForkView, StudyView

__all__ = [
    "bound_advice",
    "describe_best",
    "describe_spent",
    "format_band",
    "format_best",
    "format_cost",
    "format_duration",
    "format_number",
    "format_origin",
    "format_progress",
    "format_range",
    "format_schedule",
    "format_seconds",
]

_ACTIVITIES = {
    "training": "training",
    "evaluation": "evaluation",
    "loading": "loading data",
    "checkpoint": "checkpoints",
    "decide": "decisions",
}  # by their names in a journal


def format_progress(view: StudyView, done: int | None = None) -> str:
    """How many of all steps are done: "1,200 of 9,100 steps (13 %)"."""
    if view.costs and done is None:
        share = f"{view.share_done:.0%}".replace("%", " %")
        return f"runs at a cost of {view.cost_done:.3g} of {view.budget:g} ({share})"
    steps = view.done_steps if done is None else done
    return f"{steps:,} of {view.total_steps:,} steps ({steps / max(view.total_steps, 1):.0%})".replace("%", " %")


def format_cost(total: int, steps: int) -> str:
    """What a study will take: "9,100 steps in all, as many as 2.27 runs of 4,000"."""
    return f"{total:,} steps in all, as many as {total / steps:.3g} runs of {steps:,}"


def format_best(kept: BestState | None) -> str:
    """The best moment of a fork: "0.3 at step 100". Empty if its state was not kept."""
    return "" if kept is None else f"{format_number(kept.value)} at step {kept.step:,}"


def format_origin(view: StudyView, study: str) -> str:
    """Where the schedule of the best fork comes from: "fork 2 of the study runs/a, at its best at step 100"."""
    assert view.best is not None
    moment = "" if view.kept is None else f", at its best at step {view.kept.step:,}"
    return f"fork {view.best.fork} of the study {study}{moment if view.finished else ', which is not finished'}"


def describe_best(kept: BestState, fork: ForkView) -> str:
    """The best moment of the fork that won, and how the fork ended."""
    best = f"fork {fork.fork} was best at step {kept.step:,}: {format_number(kept.value)} ({kept.weights} weights)"
    if kept.step == fork.step:
        return f"{best}, at its end"
    return f"{best}; it ended at step {fork.step:,} with {format_number(fork.last_values.get(kept.weights))}"


def format_schedule(schedule: Schedule) -> str:
    """The rates of a schedule: "peak 0.012 until step 800, 0.008 to the end, times a warmup-stable-decay base"."""
    parts = list[str]()
    rates = [float(rate) for rate in schedule.multipliers]
    for k, rate in enumerate(rates):
        last = k == len(rates) - 1
        if last or rates[k + 1] != rate:
            parts.append(
                f"{format_number(rate)} {'to the end' if last else f'until step {schedule.change_points[k + 1]:,}'}"
            )
    if schedule.tuned_base is None:
        return f"rate {', '.join(parts)}"
    return f"peak rate {', '.join(parts)}, times a {schedule.base.name.replace('_', '-')} base"


def bound_advice(schedule: Schedule, bounds: "Sequence[float]") -> list[str]:
    """What to do if a schedule is at a bound of the rate for most of the run. Empty if it is not."""
    spans = np.diff(schedule.change_points) / schedule.change_points[-1]
    for name, bound, way in zip(("lower", "upper"), bounds, ("down", "up"), strict=False):
        if spans[np.isclose(schedule.multipliers, bound, rtol=1e-3)].sum() >= 0.5:
            return [
                f"it lies at the {name} bound, {format_number(bound)}: the best may lie beyond, "
                f"move that {way} by a decade"
            ]
    return []


def format_seconds(seconds: float) -> str:
    """A duration: "3.96 s", or "377 ms" below a second."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def format_duration(seconds: float) -> str:
    """How long something takes, roughly: "40 s", "12 min" or "3.4 h"."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def describe_spent(spent: "Mapping[str, float]") -> str:
    """What the time of a study was spent on: "40 s: 80 % training, 9 % evaluation, 5 % checkpoints, 6 % other"."""
    total = sum(spent.values())
    parts = {_ACTIVITIES[name]: 100 * spent.get(name, 0.0) / total for name in _ACTIVITIES}
    parts["other"] = 100 - sum(parts.values())
    shares = ", ".join(f"{share:.0f} % {name}" for name, share in parts.items() if share >= 0.5)
    return f"{format_duration(total)}: {shares}"


def format_range(band: Band) -> str:
    """Median and band: "0.3 (0.2 to 0.4)"."""
    return f"{format_number(band.median)} ({format_number(band.low)} to {format_number(band.high)})"


def format_band(band: Band | None) -> str:
    """Median and band with their step: "0.3 (0.2 to 0.4) at step 100". Empty if there is none."""
    return "" if band is None else f"{format_range(band)} at step {band.step:,}"
