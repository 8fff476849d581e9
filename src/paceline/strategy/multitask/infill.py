"""The next run: the schedule and the task that are expected to leave least uncertainty at the optimistic set.

{x_new, omega_new} = argmin E_y Jbar(x, omega)   (paper, eq. suropt), exhaustive over tasks

Many candidates of every task are screened by the linearised criterion; the best of each are moved by the gradient of a
criterion of few draws, all at once; where that leads is compared by the criterion of many draws. What this costs is
known beforehand and reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model import TraceModel, few_threads
from paceline.strategy.ascent import ascend
from paceline.strategy.multitask.criterion import Criterion, Linearised
from paceline.strategy.multitask.optimistic import best_schedules
from paceline.strategy.multitask.space import Run, Space, as_floats


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search.

    Args:
        outer, inner: draws of a candidate, and of each reference run given one of these, in the last comparison.
        rough: outer draws while candidates are moved.
        screened: candidates of each task that the linearised criterion sees.
        starts: candidates of each task that are moved.
        moves: gradient steps.
        draws: of a schedule, in the search for the optimistic set.
        grid, sweeps: of that search (`best_schedules`).
        climbs: gradient steps after it, in the search for answers.
    """

    outer: int = 48
    inner: int = 4
    rough: int = 8
    screened: int = 128
    starts: int = 2
    moves: int = 6
    draws: int = 48
    grid: int = 7
    sweeps: int = 2
    climbs: int = 20

    def __post_init__(self) -> None:
        if self.starts < 1 or self.screened < self.starts:
            raise InputError(f"starts are chosen among those screened, got {self.starts} among {self.screened}")

    def cost(self, tasks: int, intervals: int) -> int:
        """Intervals drawn for one decision: what its time is proportional to."""
        quantiles = self.draws * tasks * self.grid * intervals * (self.sweeps * intervals + (intervals + 1) / 2)
        moved = self.moves * self.starts * tasks * self.rough * (1 + tasks * self.inner) * intervals
        compared = self.starts * tasks * self.outer * (1 + tasks * self.inner) * intervals
        return round(quantiles + moved + compared)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A run to make and why.

    Args:
        run: task and schedule.
        reference: the optimistic set, one x per task that can be run, in the order they were given in.
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
    *,
    alpha: float = 0.9,
    effort: "Effort | None" = None,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    generator: torch.Generator,
    tasks: "Sequence[int] | None" = None,
    of: str | None = None,
) -> Choice:
    """The most informative run about the optimistic set.

    Args:
        model: fitted to the runs so far, conditioned on those under way.
        space: the schedules searched.
        alpha: order of the quantile that makes the set optimistic; higher explores more.
        effort: how hard to search.
        starts: schedules that compete for the optimistic set (`best_schedules`).
        generator: source of randomness.
        tasks: numbers of the tasks that can be run and are to be learnt about; all by default.
        of: a task whose schedule in the optimistic set is to be run as it is.
    """
    effort = effort or Effort()
    numbers = torch.tensor(range(len(model.encoder.tasks)) if tasks is None else tasks)
    lengths, count = space.lengths(model), len(numbers)
    with few_threads():
        reference = best_schedules(
            model,
            alpha,
            lengths,
            starts=starts,
            draws=effort.draws,
            grid=effort.grid,
            sweeps=effort.sweeps,
            generator=generator,
            tasks=tasks,
        )
        criterion = partial(
            Criterion.of, model, reference, lengths, inner=effort.inner, generator=generator, tasks=numbers
        )
        fine = criterion(outer=effort.outer)
        if of is None:
            owners, rough = numbers.repeat_interleave(effort.starts), criterion(outer=effort.rough)
            begin = screened(Linearised.of(model, reference, lengths, numbers), reference, effort, generator, numbers)
            x = ascend(lambda x: rough.gain(x, owners), begin, effort.moves, rate=0.08, directions=True)
        else:
            owners = torch.tensor([model.encoder.tasks.index(of)])
            x = reference[numbers == owners]
        with torch.no_grad():
            before = fine.current()
            scores = before - torch.cat([fine.gain(x[i : i + 1], owners[i : i + 1]) for i in range(len(x))])
    best = int(scores.argmin())
    rivals = {model.encoder.tasks[m]: float(scores[owners == m].min()) for m in map(int, numbers) if m in owners}
    run = Run(model.encoder.tasks[int(owners[best])], as_floats(x[best]))
    return Choice(run, reference, float(before), float(scores[best]), rivals, effort.cost(count, space.intervals))


def screened(
    criterion: Linearised,
    reference: Float[Tensor, "tasks intervals"],
    effort: Effort,
    generator: torch.Generator,
    tasks: Int[Tensor, "tasks"],
) -> Float[Tensor, "chosen intervals"]:
    """For each task the most promising of many candidates: at random, near the reference schedules, and these."""
    count, d = reference.shape
    found = list[Tensor]()
    near = max(0, (effort.screened - count) // 2)
    for task in tasks:
        anywhere = torch.rand(max(0, effort.screened - count - near), d, dtype=torch.float64, generator=generator)
        which = torch.randint(count, (near,), generator=generator)
        noise = 0.15 * torch.randn(near, d, dtype=torch.float64, generator=generator)
        x = torch.cat([reference, (reference[which] + noise).clamp(0, 1), anywhere])
        with torch.no_grad():
            gain = criterion.gain(x, task.expand(len(x)))
        found.append(x[gain.topk(effort.starts).indices])
    return torch.cat(found)
