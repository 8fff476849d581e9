"""Future runs under a model: draws of their final values, and the rates with the best final value.

The search has three parts. First the rates are chosen one interval at a time, from x_0 on, by the value at the end of
the interval. Sweeps over all intervals follow, judged by the final value itself, because what looks best at the end of
an interval need not be best at the end of the run. Then all rates climb together. All candidates use the same normals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model import Normals, RunState, TraceModel, normal_quantile
from paceline.settings import SearchBudget
from paceline.strategy.ascent import ascend
from paceline.traces import Trace

Score = Callable[[Float[Tensor, "models tasks draws tried ends"]], Float[Tensor, "tasks tried"]]

REACH = 0.5  # of the first sweep, to both sides of the best rate so far, in [0, 1] of the bounds
REACH_FACTOR = 2.5  # each sweep reaches less far than the one before, by this factor


@dataclass(frozen=True, slots=True, eq=False)
class FutureRuns:
    """Runs of some tasks under one model, from the state they are in.

    Args:
        model: with these tasks.
        tasks: their numbers in the model.
        lengths: of the intervals to come.
        normals: of the draws of a run; the same for all tasks.
        start: the run so far; None for new runs.
    """

    model: TraceModel
    tasks: Int[Tensor, "tasks"]
    lengths: Float[Tensor, "left"]
    normals: Normals
    start: Trace | None = None

    @classmethod
    def of(
        cls,
        model: TraceModel,
        tasks: Sequence[str],
        lengths: Float[Tensor, "left"],
        normals: Normals,
        start: Trace | None = None,
    ) -> "FutureRuns":
        """Runs of the tasks of these names, in this order."""
        return cls(model, task_numbers(model, tasks), lengths, normals, start)

    def finals(self, x: Float[Tensor, "tasks intervals"]) -> Float[Tensor, "tasks draws"]:
        """Draws of the value at the end of x, which may be shorter than the run; scaled, bigger is better."""
        normals, lengths = self.normals.expand(len(x)), self.lengths[: x.shape[1]]
        draw = self.model.draw_batch(x.T[..., None], self.tasks[:, None], normals, lengths, start=self.start)
        return draw.values[..., -1]

    def state(self) -> RunState:
        """The runs before the next interval; a batch of tasks and draws."""
        return self.model.run_state(self.tasks[:, None], self.normals.expand(len(self.tasks)), self.start)

    def advance(self, state: RunState, x: Float[Tensor, "tasks *tried"], k: int) -> RunState:
        """Interval k at rates x: one rate for each task, or several that are tried from the same state."""
        task, normals = self.tasks.reshape(-1, *(1,) * x.ndim), self.normals.expand(len(self.tasks))
        after, _, _ = state.advance(
            self.model.link,
            x[:, None],
            self.lengths[k],
            order=self.model.encoder.segmenter.order,
            task=task,
            normals=normals if x.ndim == 1 else normals.unsqueeze(),
            interval=k,
        )
        return after


def task_numbers(model: TraceModel, tasks: "Sequence[str] | None") -> Int[Tensor, "tasks"]:
    """The model's numbers of some tasks, of all in its own order by default.

    Strategies name tasks, or number them in the order of the names at hand. Only this function knows the model's order.
    """
    names = model.encoder.tasks if tasks is None else tasks
    return torch.tensor([model.encoder.task_number(name) for name in names])


def final_quantile(alpha: float) -> Score:
    """The alpha-quantile of the last value, all models equally likely."""

    def score(y: Float[Tensor, "models tasks draws tried ends"]) -> Float[Tensor, "tasks tried"]:
        return torch.quantile(y[..., -1].transpose(0, 1).flatten(1, 2), alpha, dim=1)

    return score


def final_mean(y: Float[Tensor, "models tasks draws tried ends"]) -> Float[Tensor, "tasks tried"]:
    """The mean of the last value, all models equally likely."""
    return y[..., -1].mean((0, 2))


def search(
    futures: Sequence[FutureRuns],
    score: Score,
    intervals: int,
    budget: SearchBudget,
    *,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    highest: "Float[Tensor, 'tasks'] | None" = None,
) -> tuple[Float[Tensor, "tasks intervals"], Float[Tensor, "tasks"]]:
    """The best x for each task, and its score; without the gradient steps (`climb`).

    Args:
        futures: of the same tasks, one for each model that is averaged over.
        score: what is maximised.
        intervals: how many of those to come are looked at.
        budget: values of x_k that are tried at once, and sweeps; each sweep tries values closer to the best.
        starts: schedules to compare with, such as those that were run; sweeps begin from the best.
        highest: the highest rate of each task; 1 by default.
    """
    count, even = len(futures[0].tasks), torch.linspace(0, 1, budget.grid, dtype=torch.float64)
    top = (torch.ones(count, dtype=torch.float64) if highest is None else highest)[:, None, None]
    with torch.no_grad():
        x = 0.5 * top[..., 0].expand(count, intervals)
        x, best = _sweep(futures, score, x, (top * even).expand(count, intervals, budget.grid), whole=False)
        if starts is not None:
            x, best = _best_of(futures, score, torch.cat([x[None], torch.minimum(starts, top[..., 0])]))
        reach = REACH
        for _ in range(budget.sweeps):
            around = reach * (2 * even - 1)
            x, best = _sweep(futures, score, x, torch.minimum((x[..., None] + around).clamp_min(0), top), whole=True)
            reach /= REACH_FACTOR
    return x, best


def _best_of(
    futures: Sequence[FutureRuns], score: Score, schedules: Float[Tensor, "schedules tasks intervals"]
) -> tuple[Float[Tensor, "tasks intervals"], Float[Tensor, "tasks"]]:
    """The best of some schedules for each task, and its score."""
    count, tasks = schedules.shape[:2]
    finals = torch.stack(
        [replace(runs, tasks=runs.tasks.repeat(count)).finals(schedules.flatten(0, 1)) for runs in futures]
    )
    by_schedule = finals.reshape(len(futures), count, tasks, -1).movedim(1, -1)
    best, index = score(by_schedule[..., None]).max(1)
    return schedules[index, torch.arange(tasks)], best


def _sweep(
    futures: Sequence[FutureRuns],
    score: Score,
    x: Float[Tensor, "tasks intervals"],
    values: Float[Tensor, "tasks intervals tried"],
    *,
    whole: bool,
) -> tuple[Float[Tensor, "tasks intervals"], Float[Tensor, "tasks"]]:
    """x with each rate in turn the best of its `values`, judged by the end of the run or by that of the interval.

    What comes before an interval is drawn once for all values that are tried there.
    """
    x, (count, left, tried) = x.clone(), values.shape
    states, best = [runs.state() for runs in futures], torch.full((count,), -torch.inf, dtype=torch.float64)
    for k in range(left):
        end, ends = left if whole else k + 1, list[Tensor]()
        for runs, state in zip(futures, states, strict=True):
            path = state.repeat(tried)
            for j in range(k, end):
                rate = values[:, k] if j == k else x[:, j, None]
                path = runs.advance(path, rate, j)
            ends.append(torch.stack([y.expand(path.process.batch) for y in path.values[:end][::-1]], -1))
        best, index = score(torch.stack(ends)).max(1)
        x[:, k] = values[torch.arange(count), k, index]
        states = [runs.advance(state, x[:, k], k) for runs, state in zip(futures, states, strict=True)]
    return x, best


def climb(
    futures: Sequence[FutureRuns],
    alpha: "float | None",
    x: Float[Tensor, "tasks intervals"],
    steps: int,
    highest: "Float[Tensor, 'tasks'] | None" = None,
) -> Float[Tensor, "tasks intervals"]:
    """Each task's x moved up mean + Phi^-1(alpha) deviations of the final value, or its mean if alpha is None."""
    order = 0.0 if alpha is None else normal_quantile(alpha)

    def score(x: Float[Tensor, "tasks intervals"]) -> Float[Tensor, "tasks"]:
        finals = torch.cat([runs.finals(x) for runs in futures], 1)
        return finals.mean(1) + order * finals.std(1)

    return ascend(score, x, steps, highest=highest)
