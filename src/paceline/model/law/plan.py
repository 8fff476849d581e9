"""Planning: the schedule whose forecast ends best, by gradient through the law.

What is maximised is a quantile of the final value over the draws of the law's parameters. The law does not describe
divergence. So a plan stays near the rates that were stable for a good part of a run, and warms up no faster than they
did.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from paceline.errors import InputError
from paceline.model.forecast import Forecast
from paceline.model.law.schedule_families import ScheduleFamily, schedule_family
from paceline.model.law.settings import PLAN
from paceline.model.law.stability import shortest_warmup, stable_range
from paceline.model.law.state import SchedulePieces
from paceline.model.linalg import tensor
from paceline.traces import LearningRateRange, Schedule, Trace

if TYPE_CHECKING:
    from paceline.model.law.model import LawModel


@dataclass(frozen=True, slots=True, eq=False)
class PlannedSchedule:
    """A schedule and its forecast.

    Args:
        schedule: from step 0 to the end; it includes the past of a run that is continued.
        forecast: of values to be recorded.
        family: the family that was searched.
        quantile: the order of the quantile that was maximised, on the scale of improvement.
        caveats: what the runs behind it cannot show.
    """

    schedule: Schedule
    forecast: Forecast
    family: str
    quantile: float
    caveats: tuple[str, ...]


def plan(
    model: "LawModel",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    start: Trace | None = None,
    family: str = "shape",
    quantile: float = 0.5,
    task: str | None = None,
    intervals: int = 10,
) -> PlannedSchedule:
    """The schedule of a family that maximises a quantile of the final value.

    Args:
        model: the fitted law.
        steps: length of the run.
        lr: bounds of the rate (of the peak, of the multiplier).
        start: a run to continue; by default a new one.
        family: "shape" for base shapes (a new run only); "multipliers" of the base that the run has, or of the default
            base for a new run; "free" for rates on intervals, after the shortest warm-up of a stable run if it is new.
        quantile: on the scale of improvement: 0.5 is the median, lower is more careful.
        task: the task of a new run, if the model has tasks.
        intervals: how many, for multipliers and free rates.
    """
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    if not 0 < quantile < 1:
        raise InputError(f"quantile must lie in (0, 1), got {quantile}: 0.5 is the median, lower is more careful")
    begin = 0 if start is None else start.last_step
    if steps <= begin:
        raise InputError(
            f"steps must lie after step {begin:,}, the current step of the run, got {steps:,}: plan a longer run"
        )
    schedules = schedule_family(
        family, stable_range(model.traces, lr), steps, start, intervals, shortest_warmup(model.traces)
    )
    number = model.task_number(task if start is None else start.task)
    objective = final_loss(model, schedules, steps, start, number, 1 - quantile)
    best: np.ndarray | None = None
    value = np.inf
    for first in schedules.starts():
        result: Any = minimize(
            objective,
            np.array(first),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * len(first),
            options={"maxiter": PLAN.iterations},
        )
        if best is None or result.fun < value:
            best, value = np.asarray(result.x, dtype=float), float(result.fun)
    assert best is not None
    schedule = schedules.schedule(best)
    forecast = model.forecast(schedule, start=start, task=task)
    return PlannedSchedule(schedule, forecast, family, quantile, model.caveats)


def final_loss(
    model: "LawModel", schedules: ScheduleFamily, steps: int, start: Trace | None, task: int, order: float
) -> "Callable[[Float[np.ndarray, 'size']], tuple[float, Float[np.ndarray, 'size']]]":
    """A function of the numbers of a family: a quantile of the log of the final loss, and its gradient.

    Args:
        model: the fitted law.
        schedules: the family.
        steps: length of the run.
        start: the run so far; None for a new run.
        task: number of its task.
        order: of the quantile.
    """
    past = _past_pieces(start)
    edges = np.linspace(0 if start is None else start.last_step, steps, PLAN.pieces + 1)
    middle, lengths = tensor((edges[1:] + edges[:-1]) / 2 - 0.5), tensor(np.diff(edges))
    counts = torch.tensor([PLAN.pieces + len(past.rates)])

    def value(x: Float[np.ndarray, "size"]) -> tuple[float, Float[np.ndarray, "size"]]:
        at = tensor(x).requires_grad_()
        rates = torch.exp(schedules.log_rates(at, middle))
        whole = torch.cat([past.rates, rates])
        pieces = SchedulePieces(whole, torch.cat([past.lengths, lengths]), counts, rates[-1:])
        final = torch.quantile(torch.log(model.law_at(pieces, task)[:, 0]), order)
        return float(final.detach()), torch.autograd.grad(final, at)[0].numpy()

    return value


def _past_pieces(start: Trace | None) -> SchedulePieces:
    if start is None or start.last_step == 0:
        empty = torch.zeros(0, dtype=torch.float64)
        return SchedulePieces(empty, empty, torch.zeros(0, dtype=torch.long), empty)
    return SchedulePieces.of(start.schedule, np.array([start.last_step]))
