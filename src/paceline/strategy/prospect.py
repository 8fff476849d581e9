"""Runs to come: what they may lead to, and the best rates for them.

Rates are searched one interval at a time, from x_0 on: first by where each interval ends, then in sweeps on the final
value itself, since what looks best at the end of an interval need not be best at the end of the run; then all of them
climb together. Everything that is tried meets the same normals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model import Normals, RunState, TraceModel, normal_quantile
from paceline.strategy.ascent import ascend
from paceline.traces import Trace

Score = Callable[[Float[Tensor, "models tasks draws tried ends"]], Float[Tensor, "tasks tried"]]


@dataclass(frozen=True, slots=True, eq=False)
class Prospect:
    """Runs of some tasks under one model, from where they stand.

    Args:
        model: with these tasks.
        tasks: their numbers.
        lengths: of the intervals to come.
        normals: of the draws of a run; the same for all tasks.
        start: the run so far; new runs by default.
    """

    model: TraceModel
    tasks: Int[Tensor, "tasks"]
    lengths: Float[Tensor, "left"]
    normals: Normals
    start: Trace | None = None

    def finals(self, x: Float[Tensor, "tasks intervals"]) -> Float[Tensor, "tasks draws"]:
        """Draws of the value at the end of x, which may be a beginning of what is to come; scaled, bigger is better."""
        same, lengths = self.normals.for_each(len(x)), self.lengths[: x.shape[1]]
        drawn = self.model.draw_new(x.T[..., None], self.tasks[:, None], same, lengths, start=self.start)
        return drawn.values[..., -1]

    def standing(self) -> RunState:
        """Before the next interval; a batch of tasks and draws."""
        return self.model.run_state(self.tasks[:, None], self.normals.for_each(len(self.tasks)), self.start)

    def advance(self, at: RunState, x: Float[Tensor, "tasks *tried"], k: int) -> RunState:
        """Interval k at rates x, for runs that stand there once, or once for each rate that is tried."""
        task, normals = self.tasks.reshape(-1, *(1,) * x.ndim), self.normals.for_each(len(self.tasks))
        step, _, _ = at.advance(
            self.model.link,
            x[:, None],
            self.lengths[k],
            order=self.model.encoder.segmenter.order,
            task=task,
            normals=normals if x.ndim == 1 else normals.shared(),
            interval=k,
        )
        return step


def quantile(alpha: float) -> Score:
    """The alpha-quantile of the last end, all models equally likely."""

    def score(y: Float[Tensor, "models tasks draws tried ends"]) -> Float[Tensor, "tasks tried"]:
        return torch.quantile(y[..., -1].transpose(0, 1).flatten(1, 2), alpha, dim=1)

    return score


def search(
    prospects: Sequence[Prospect],
    score: Score,
    intervals: int,
    *,
    grid: int,
    sweeps: int,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
) -> tuple[Float[Tensor, "tasks intervals"], Float[Tensor, "tasks"]]:
    """The best x for each task, and its score.

    Args:
        prospects: of the same tasks, one for each model that is to be reckoned with.
        score: what is maximised.
        intervals: how many of those to come are looked at.
        grid: values of x_k that are tried at once; each sweep tries them closer around the best.
        sweeps: over all intervals.
        starts: schedules to compare with, such as those that were run; sweeps begin from the best.
    """
    count, even = len(prospects[0].tasks), torch.linspace(0, 1, grid, dtype=torch.float64)
    with torch.no_grad():
        x = torch.full((count, intervals), 0.5, dtype=torch.float64)
        x, best = _sweep(prospects, score, x, even.expand(count, intervals, grid), whole=False)
        if starts is not None:
            known = torch.cat([x[None], starts])
            many = [replace(prospect, tasks=prospect.tasks.repeat(len(known))) for prospect in prospects]
            finals = torch.stack([prospect.finals(known.flatten(0, 1)) for prospect in many])
            tried = finals.reshape(len(many), *known.shape[:2], -1).movedim(1, -1)
            best, chosen = score(tried[..., None]).max(1)
            x = known[chosen, torch.arange(count)]
        reach = 0.5
        for _ in range(sweeps):
            around = reach * (2 * even - 1)
            x, best = _sweep(prospects, score, x, (x[..., None] + around).clamp(0, 1), whole=True)
            reach /= 2.5
    return x, best


def _sweep(
    prospects: Sequence[Prospect],
    score: Score,
    x: Float[Tensor, "tasks intervals"],
    values: Float[Tensor, "tasks intervals tried"],
    *,
    whole: bool,
) -> tuple[Float[Tensor, "tasks intervals"], Float[Tensor, "tasks"]]:
    """x with each place in turn the best of its `values`, judged by the end of the run or of the interval.

    What comes before a place is drawn once for all that is tried there.
    """
    x, (count, left, tried) = x.clone(), values.shape
    at, best = [prospect.standing() for prospect in prospects], torch.full((count,), -torch.inf, dtype=torch.float64)
    for k in range(left):
        ends, found = left if whole else k + 1, list[Tensor]()
        for prospect, here in zip(prospects, at, strict=True):
            path = here.repeat(tried)
            for j in range(k, ends):
                rate = values[:, k] if j == k else x[:, j, None]
                path = prospect.advance(path, rate, j)
            found.append(torch.stack([y.expand(path.process.batch) for y in path.values[:ends][::-1]], -1))
        best, chosen = score(torch.stack(found)).max(1)
        x[:, k] = values[torch.arange(count), k, chosen]
        at = [prospect.advance(here, x[:, k], k) for prospect, here in zip(prospects, at, strict=True)]
    return x, best


def climb(
    prospects: Sequence[Prospect], alpha: float, x: Float[Tensor, "tasks intervals"], moves: int
) -> Float[Tensor, "tasks intervals"]:
    """Each task's x moved up mean + Phi^-1(alpha) deviations of the final value."""
    order = normal_quantile(alpha)

    def score(x: Float[Tensor, "tasks intervals"]) -> Float[Tensor, "tasks"]:
        finals = torch.cat([prospect.finals(x) for prospect in prospects], 1)
        return finals.mean(1) + order * finals.std(1)

    return ascend(score, x, moves)
