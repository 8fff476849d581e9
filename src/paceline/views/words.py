"""Numbers, shares and schedules as people read them."""

from collections.abc import Sequence

import numpy as np

from paceline.study.wording import number
from paceline.traces import Schedule
from paceline.views.data import Band, StudyView

__all__ = [
    "band_in_words",
    "bound_in_words",
    "cost_in_words",
    "number",
    "schedule_in_words",
    "share",
]


def share(view: StudyView, done: int | None = None) -> str:
    """How much of all steps is done: "1,200 of 9,100 steps (13 %)"."""
    steps = view.done_steps if done is None else done
    return f"{steps:,} of {view.total_steps:,} steps ({steps / max(view.total_steps, 1):.0%})".replace("%", " %")


def cost_in_words(total: int, steps: int) -> str:
    """What a study will take: "9,100 steps in all, as many as 2.27 runs of 4,000"."""
    return f"{total:,} steps in all, as many as {total / steps:.3g} runs of {steps:,}"


def schedule_in_words(schedule: Schedule) -> str:
    """The rates of a schedule: "peak 0.012 until step 800, 0.008 to the end, times a warmup-stable-decay base"."""
    parts = list[str]()
    rates = [float(rate) for rate in schedule.multipliers]
    for k, rate in enumerate(rates):
        last = k == len(rates) - 1
        if last or rates[k + 1] != rate:
            parts.append(f"{number(rate)} {'to the end' if last else f'until step {schedule.change_points[k + 1]:,}'}")
    if schedule.tuned_base is None:
        return f"rate {', '.join(parts)}"
    return f"peak rate {', '.join(parts)}, times a {schedule.base.name.replace('_', '-')} base"


def bound_in_words(schedule: Schedule, bounds: "Sequence[float]") -> list[str]:
    """What to do where a schedule lies at a bound of the rate for most of the run; nothing where it does not."""
    spans = np.diff(schedule.change_points) / schedule.change_points[-1]
    for name, bound, way in zip(("lower", "upper"), bounds, ("down", "up"), strict=False):
        if spans[np.isclose(schedule.multipliers, bound, rtol=1e-3)].sum() >= 0.5:
            return [
                f"it lies at the {name} bound, {number(bound)}: the best may lie beyond, move that {way} by a decade"
            ]
    return []


def band_in_words(band: Band | None) -> str:
    """Median and band: "0.3 (0.2 to 0.4) at step 100"; nothing where there is none."""
    if band is None:
        return ""
    return f"{number(band.median)} ({number(band.low)} to {number(band.high)}) at step {band.step:,}"
