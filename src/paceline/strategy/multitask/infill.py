"""The next run: the schedule and the task that are expected to leave least uncertainty at the optimistic set.

{x_new, omega_new} = argmin E_y Jbar(x, omega)   (paper, eq. suropt), exhaustive over tasks

If the runs of tasks differ in cost, it is argmax (J - E_y Jbar(x, omega)) / cost(omega). J is of the wanted tasks.

Many candidates of every task are ranked by the linear criterion. The best of each are moved, all at once, by the
gradient of a criterion of few draws. A criterion of many draws then compares them. What this costs is known beforehand
and reported.
"""

from collections.abc import Mapping, Sequence
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
        run_cost: what the run costs, in the unit of the budget.
    """

    run: Run
    reference: Float[Tensor, "tasks intervals"]
    before: float
    after: float
    rivals: dict[str, float]
    cost: int
    run_cost: float = 1


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
    wanted: "Sequence[str] | None" = None,
    costs: "Mapping[str, float] | None" = None,
) -> InfillChoice:
    """The run that teaches most about the optimistic set for its cost; or the optimistic schedule of one task.

    Args:
        model: fitted to the runs so far, conditioned on those under way.
        space: the schedules searched.
        tasks: names of the tasks that have a schedule in the optimistic set.
        alpha: order of the quantile that makes the set optimistic; higher explores more.
        search: how hard to search for the set.
        infill: how hard to search for the run.
        generator: source of randomness.
        starts: schedules that compete for the optimistic set (`best_schedules`).
        optimistic_task: the task whose schedule in the optimistic set is run as it is, without a search.
        highest: the highest rate of each task (`SafeRates.highest`); 1 by default.
        wanted: the tasks to be learnt about; all by default.
        costs: of a run of each task that can be run; 1 for all tasks by default.
    """
    wanted = tasks if wanted is None else wanted
    run_costs = dict.fromkeys(tasks, 1.0) if costs is None else costs
    candidates = [tasks.index(task) for task in run_costs]
    lengths = space.lengths(model)
    top = torch.ones(len(tasks), dtype=torch.float64) if highest is None else highest
    with few_threads():
        sweeps_only = replace(search, gradient_steps=0)
        reference = best_schedules(
            model, alpha, lengths, sweeps_only, generator=generator, tasks=tasks, starts=starts, highest=top
        )
        targets = reference[[tasks.index(task) for task in wanted]]
        criterion = partial(
            Criterion.of,
            model,
            targets,
            lengths,
            inner_draws=infill.inner_draws,
            generator=generator,
            tasks=wanted,
            candidate_tasks=tasks,
        )
        fine = criterion(outer_draws=infill.outer_draws)
        if optimistic_task is None:
            owners = torch.tensor(candidates).repeat_interleave(infill.starts)
            rough = criterion(outer_draws=infill.rough_draws)
            linear = LinearCriterion.of(model, targets, lengths, wanted, tasks)
            begin = screen(linear, reference, infill, generator, top, candidates)
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
            gains = torch.cat([fine.gain(x[i : i + 1], owners[i : i + 1]) for i in range(len(x))])
            scores = before - gains
    price = torch.tensor([run_costs[tasks[int(m)]] for m in owners], dtype=torch.float64)
    best = int(scores.argmin() if bool((price == price[0]).all()) else (gains / price).argmax())
    rivals = {task: float(scores[owners == m].min()) for m, task in enumerate(tasks) if m in owners}
    run = Run(tasks[int(owners[best])], as_floats(x[best]))
    cost = decision_cost(search, infill, len(tasks), space.intervals, wanted=len(wanted), candidates=len(candidates))
    return InfillChoice(run, reference, float(before), float(scores[best]), rivals, cost, float(price[best]))


def screen(
    criterion: LinearCriterion,
    reference: Float[Tensor, "tasks intervals"],
    infill: InfillBudget,
    generator: torch.Generator,
    highest: "Float[Tensor, 'tasks'] | None" = None,
    tasks: "Sequence[int] | None" = None,
) -> Float[Tensor, "starts intervals"]:
    """The most promising candidates of each task: of the reference schedules, others near them, and random ones.

    Args:
        criterion: what ranks them.
        reference: the optimistic set.
        infill: how many.
        generator: source of randomness.
        highest: the highest rate of each task of the reference; 1 by default.
        tasks: those that can be run, by their numbers in the reference; all by default.
    """
    count, d = reference.shape
    best = list[Tensor]()
    near = max(0, (infill.candidates - count) // 2)
    tops = torch.ones(count, dtype=torch.float64) if highest is None else highest
    for number in range(count) if tasks is None else tasks:
        task, top = torch.tensor(number), tops[number]
        anywhere = torch.rand(max(0, infill.candidates - count - near), d, dtype=torch.float64, generator=generator)
        which = torch.randint(count, (near,), generator=generator)
        noise = CANDIDATE_SPREAD * torch.randn(near, d, dtype=torch.float64, generator=generator)
        near_reference = (reference[which] + noise).clamp(0, 1)
        x = torch.cat([torch.minimum(torch.cat([reference, near_reference]), top), top * anywhere])
        with torch.no_grad():
            gain = criterion.gain(x, task.expand(len(x)))
        best.append(x[gain.topk(infill.starts).indices])
    return torch.cat(best)


def decision_cost(
    search: SearchBudget,
    infill: InfillBudget,
    tasks: int,
    intervals: int,
    *,
    wanted: int | None = None,
    candidates: int | None = None,
) -> int:
    """Intervals drawn for one decision, about some of its tasks with candidates of some: its time is as long."""
    per_draw, each = 1 + (wanted or tasks) * infill.inner_draws, candidates or tasks
    quantiles = search.draws * tasks * search.grid * intervals * (search.sweeps * intervals + (intervals + 1) / 2)
    ascent = infill.gradient_steps * infill.starts * each * infill.rough_draws * per_draw * intervals
    comparison = infill.starts * each * infill.outer_draws * per_draw * intervals
    return round(quantiles + ascent + comparison)
