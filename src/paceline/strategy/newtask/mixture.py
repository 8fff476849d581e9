"""A new task as a mixture over where it may lie: draws of its runs, the best rest of a schedule, the best probe."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import TraceModel
from paceline.model.linalg import few_threads, tensor
from paceline.model.paths import Normals
from paceline.strategy.multitask import Space
from paceline.traces import Trace

Score = Callable[[Float[Tensor, "schedules intervals"]], Float[Tensor, "schedules"]]


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Models of one task at several places, equally likely, and the run so far.

    Args:
        models: one per place.
        task: its name.
        space: the schedules searched.
        start: the run so far; None before it begins.
        done: intervals behind.
    """

    models: tuple[TraceModel, ...]
    task: str
    space: Space
    start: Trace | None = None
    done: int = 0

    @property
    def lengths(self) -> Float[Tensor, "left"]:
        """Of the intervals still to come."""
        if self.start is None:
            return self.space.lengths(self.models[0])
        schedule, begin = self.space.schedule([0.5] * self.space.intervals), int(self.space.change_points[self.done])
        return tensor(self.models[0].frame.ahead(schedule, begin).lengths)

    def draw(
        self, x: Float[Tensor, "schedules known"], normals: Normals
    ) -> Float[Tensor, "models schedules draws known"]:
        """Values at the end of each of the next intervals, scaled, for beginnings of the rest of the schedule.

        Normals have dimensions (models, draws), or (draws) where all models share them.
        """
        lengths, (count, known) = self.lengths, x.shape
        found = list[Tensor]()
        for i, model in enumerate(self.models):
            e = normals if normals.start.ndim == 1 else normals.at(i)
            e = e.first(known).for_each(count)
            number = torch.tensor(model.frame.tasks.index(self.task))
            drawn = model.draw_new(x.T[..., None], number, e, lengths[:known], start=self.start)
            found.append(drawn.values[..., 1:])
        return torch.stack(found)

    def best_rest(
        self,
        alpha: float,
        *,
        draws: int,
        grid: int,
        sweeps: int,
        horizon: int | None = None,
        generator: torch.Generator,
    ) -> tuple[Float[Tensor, "left"], float]:
        """The rest of the schedule with the best alpha-quantile of the final value, and that quantile, scaled.

        `horizon` counts the intervals to look ahead; all that are left by default.
        """
        left = len(self.lengths) if horizon is None else min(horizon, len(self.lengths))
        p = self.models[0].link.latents
        normals = Normals.of(p, len(self.models) * draws, left, generator).reshaped(len(self.models), draws)

        def score(x: Tensor) -> Tensor:
            final = self.draw(x, normals)[..., -1]
            return torch.quantile(final.transpose(0, 1).flatten(1), alpha, dim=1)

        with torch.no_grad(), few_threads():
            return search(score, left, grid=grid, sweeps=sweeps)

    def best_probe(
        self, intervals: int, *, draws: int, grid: int, sweeps: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "probe"], float]:
        """The rates of the first intervals from which most is learnt about where the task lies, and how much.

        x_{:i} = argmax sum_t Var_w(E[Y(x_{:i}, t, w) | w]) / Var(Y(x_{:i}, t, w)), over the ends of the intervals, as
        the paper's prose has it (docs/design.md). All places meet the same normals; what their means differ by beyond
        that is the main effect of a two-way layout.
        """
        normals = Normals.of(self.models[0].link.latents, draws, intervals, generator)

        def score(x: Tensor) -> Tensor:
            return share_due_to_place(self.draw(x, normals)).mean(-1)

        with torch.no_grad(), few_threads():
            return search(score, intervals, grid=grid, sweeps=sweeps)


def share_due_to_place(y: Float[Tensor, "models schedules draws ends"]) -> Float[Tensor, "schedules ends"]:
    """Var_w(E[Y | w]) / Var(Y), from draws that share their normals between places."""
    models, _, draws, _ = y.shape
    expected, luck = y.mean(2, keepdim=True), y.mean(0, keepdim=True)
    left = y - expected - luck + y.mean((0, 2), keepdim=True)
    spurious = left.square().sum((0, 2)) / ((models - 1) * (draws - 1)) / draws
    due = (expected[:, :, 0].var(0) - spurious).clamp_min(0.0)
    within = y.var(2).mean(0)
    return due / (due + within).clamp_min(1e-300)


def search(score: Score, intervals: int, *, grid: int, sweeps: int) -> tuple[Float[Tensor, "intervals"], float]:
    """The best x, one interval at a time: first by where each interval ends, then in sweeps over all of them."""
    even = torch.linspace(0, 1, grid, dtype=torch.float64)
    x, best = torch.full((intervals,), 0.5, dtype=torch.float64), -np.inf

    def choose(x: Tensor, k: int, values: Tensor, stop: int) -> tuple[Tensor, float]:
        tried = x[:stop].repeat(len(values), 1)
        tried[:, k] = values
        scores = score(tried)
        i = int(scores.argmax())
        return torch.cat([tried[i], x[stop:]]), float(scores[i])

    for k in range(intervals):
        x, best = choose(x, k, even, k + 1)
    reach = 0.5
    for _ in range(sweeps):
        around = reach * torch.linspace(-1, 1, grid, dtype=torch.float64)
        for k in range(intervals):
            x, best = choose(x, k, (x[k] + around).clamp(0, 1), intervals)
        reach /= 2.5
    return x, best
