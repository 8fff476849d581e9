"""The next run: the schedule and the task that are expected to leave least uncertainty at the optimistic set.

{x_new, omega_new} = argmin E_y Jbar(x, omega)   (paper, eq. suropt), exhaustive over tasks

Many candidates of every task are ranked by the linear criterion. The best of each are moved, all at once, by the
gradient of a criterion of few draws. A criterion of many draws then compares them. What this costs is known beforehand
and reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import TraceModel, few_threads
from paceline.settings import InfillBudget, SearchBudget
from paceline.strategy.ascent import ascend
from paceline.strategy.multitask.best_schedules import best_schedules
from paceline.strategy.multitask.criterion import Criterion, LinearCriterion
from paceline.strategy.multitask.space import Run, Space, as_floats

STEP_SIZE = 0.08  # of the gradient steps that move candidates, in [0, 1] of the bounds
CANDIDATE_SPREAD = 0.15  # deviation of the candidates near a reference schedule, likewise


@dataclass(frozen=True, slots=True, eq=False)
class InfillChoice:
    """A run to make, and why.

    Args:
        run: task and schedule.
        reference: the optimistic set, one x per task, in the order in which the tasks were given.
        before: J, in squared scaled units.
        after: E Jbar of the run.
        rivals: the best E Jbar of each task that was considered, by its name.
        cost: intervals drawn for the decision.
    """

    run: Run
    reference: Float[Tensor, "tasks intervals"]
    before: float
    after: float
    rivals: dict[str, float]
    cost: int


def next_run(
    model: TraceModel,
    space: Space,
    tasks: Sequence[str],
    *,
    alpha: float,
    search: SearchBudget,
    infill: InfillBudget,
    generator: torch.Generator,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    optimistic_task: str | None = None,
    highest: "Float[Tensor, 'tasks'] | None" = None,
) -> InfillChoice:
    """The run that teaches most about the optimistic set; or the optimistic schedule of one task.

    Args:
        model: fitted to the runs so far, conditioned on those under way.
        space: the schedules searched.
        tasks: names of the tasks that can be run and are to be learnt about.
        alpha: order of the quantile that makes the set optimistic; higher explores more.
        search: how hard to search for the set.
        infill: how hard to search for the run.
        generator: source of randomness.
        starts: schedules that compete for the optimistic set (`best_schedules`).
        optimistic_task: the task whose schedule in the optimistic set is run as it is, without a search.
        highest: the highest rate of each task (`SafeRates.highest`); 1 by default.
    """
    lengths = space.lengths(model)
    top = torch.ones(len(tasks), dtype=torch.float64) if highest is None else highest
    with few_threads():
        sweeps_only = replace(search, gradient_steps=0)
        reference = best_schedules(
            model, alpha, lengths, sweeps_only, generator=generator, tasks=tasks, starts=starts, highest=top
        )
        criterion = partial(
            Criterion.of, model, reference, lengths, inner_draws=infill.inner_draws, generator=generator, tasks=tasks
        )
        fine = criterion(outer_draws=infill.outer_draws)
        if optimistic_task is None:
            owners = torch.arange(len(tasks)).repeat_interleave(infill.starts)
            rough = criterion(outer_draws=infill.rough_draws)
            linear = LinearCriterion.of(model, reference, lengths, tasks)
            begin = screen(linear, reference, infill, generator, top)
            x = ascend(
                lambda x: rough.gain(x, owners),
                begin,
                infill.gradient_steps,
                step_size=STEP_SIZE,
                normalise=True,
                highest=top[owners],
            )
        else:
            owners = torch.tensor([tasks.index(optimistic_task)])
            x = reference[owners]
        with torch.no_grad():
            before = fine.current()
            scores = before - torch.cat([fine.gain(x[i : i + 1], owners[i : i + 1]) for i in range(len(x))])
    best = int(scores.argmin())
    rivals = {task: float(scores[owners == m].min()) for m, task in enumerate(tasks) if m in owners}
    run = Run(tasks[int(owners[best])], as_floats(x[best]))
    cost = decision_cost(search, infill, len(tasks), space.intervals)
    return InfillChoice(run, reference, float(before), float(scores[best]), rivals, cost)


def screen(
    criterion: LinearCriterion,
    reference: Float[Tensor, "tasks intervals"],
    infill: InfillBudget,
    generator: torch.Generator,
    highest: "Float[Tensor, 'tasks'] | None" = None,
) -> Float[Tensor, "starts intervals"]:
    """The most promising candidates of each task: of the reference schedules, others near them, and random ones."""
    count, d = reference.shape
    best = list[Tensor]()
    near = max(0, (infill.candidates - count) // 2)
    tops = torch.ones(count, dtype=torch.float64) if highest is None else highest
    for task, top in zip(torch.arange(count), tops, strict=True):
        anywhere = torch.rand(max(0, infill.candidates - count - near), d, dtype=torch.float64, generator=generator)
        which = torch.randint(count, (near,), generator=generator)
        noise = CANDIDATE_SPREAD * torch.randn(near, d, dtype=torch.float64, generator=generator)
        near_reference = (reference[which] + noise).clamp(0, 1)
        x = torch.cat([torch.minimum(torch.cat([reference, near_reference]), top), top * anywhere])
        with torch.no_grad():
            gain = criterion.gain(x, task.expand(len(x)))
        best.append(x[gain.topk(infill.starts).indices])
    return torch.cat(best)


def decision_cost(search: SearchBudget, infill: InfillBudget, tasks: int, intervals: int) -> int:
    """Intervals drawn for one decision: its time is proportional to this."""
    per_draw = 1 + tasks * infill.inner_draws
    quantiles = search.draws * tasks * search.grid * intervals * (search.sweeps * intervals + (intervals + 1) / 2)
    ascent = infill.gradient_steps * infill.starts * tasks * infill.rough_draws * per_draw * intervals
    comparison = infill.starts * tasks * infill.outer_draws * per_draw * intervals
    return round(quantiles + ascent + comparison)
