"""A new task as a mixture over where it may lie: the best rest of a schedule, and the most informative beginning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import TraceModel
from paceline.model.linalg import few_threads, normal_quantile, tensor
from paceline.model.paths import Normals, Standing
from paceline.strategy.ascent import ascend
from paceline.strategy.multitask import Space
from paceline.traces import Trace

Score = Callable[[Float[Tensor, "models draws tried ends"]], Float[Tensor, "tried"]]


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

    def best_rest(
        self,
        alpha: float,
        *,
        draws: int,
        grid: int,
        sweeps: int,
        climbs: int,
        horizon: int | None = None,
        generator: torch.Generator,
    ) -> tuple[Float[Tensor, "left"], float]:
        """The rest of the schedule with the best alpha-quantile of the final value, and that quantile, scaled.

        Found in sweeps over its intervals, then by `climbs` gradient steps of all together. `horizon` counts the
        intervals to look ahead; all that are left by default.
        """
        left = len(self.lengths) if horizon is None else min(horizon, len(self.lengths))
        normals = [Normals.of(self.models[0].link.latents, draws, left, generator) for _ in self.models]

        def score(y: Float[Tensor, "models draws tried ends"]) -> Float[Tensor, "tried"]:
            return torch.quantile(y[..., -1].flatten(0, 1), alpha, dim=0)

        x, _ = self._search(score, normals, left, grid, sweeps)
        x = self._climbed(x, normal_quantile(alpha), normals, climbs)
        with torch.no_grad(), few_threads():
            return x, float(torch.quantile(self._finals(x, normals).flatten(), alpha))

    def best_probe(
        self, intervals: int, *, draws: int, grid: int, sweeps: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "probe"], float]:
        """The rates of the first intervals from which most is learnt about where the task lies, and how much.

        x_{:i} = argmax sum_t Var_w(E[Y(x_{:i}, t, w) | w]) / Var(Y(x_{:i}, t, w)), over the ends of the intervals, as
        the paper's prose has it (docs/design.md). All places meet the same normals; what their means differ by beyond
        that is the main effect of a two-way layout.
        """
        same = Normals.of(self.models[0].link.latents, draws, intervals, generator)

        def score(y: Float[Tensor, "models draws tried ends"]) -> Float[Tensor, "tried"]:
            return share_due_to_place(y).mean(-1)

        return self._search(score, [same] * len(self.models), intervals, grid, sweeps)

    def _finals(self, x: Float[Tensor, "left"], normals: Sequence[Normals]) -> Float[Tensor, "models draws"]:
        """Draws of the final value under one schedule."""
        lengths, found = self.lengths[: len(x)], list[Tensor]()
        for model, e in zip(self.models, normals, strict=True):
            number = torch.tensor(model.frame.tasks.index(self.task))
            found.append(model.draw_new(x, number, e, lengths, start=self.start).values[:, -1])
        return torch.stack(found)

    def _climbed(
        self, x: Float[Tensor, "left"], deviations: float, normals: Sequence[Normals], climbs: int
    ) -> Float[Tensor, "left"]:
        """x moved up mean + so many deviations of the final value."""

        def score(x: Float[Tensor, "one left"]) -> Float[Tensor, "one"]:
            finals = self._finals(x[0], normals)
            return (finals.mean() + deviations * finals.std())[None]

        with few_threads():
            return ascend(score, x[None], climbs)[0]

    def _search(
        self, score: Score, normals: Sequence[Normals], left: int, grid: int, sweeps: int
    ) -> tuple[Float[Tensor, "left"], float]:
        """The best x, one interval at a time: first by where each interval ends, then in sweeps over all of them."""
        x = torch.full((left,), 0.5, dtype=torch.float64)
        even = torch.linspace(0, 1, grid, dtype=torch.float64)
        with torch.no_grad(), few_threads():
            x, best = self._sweep(score, normals, x, even.expand(left, grid), whole=False)
            reach = 0.5
            for _ in range(sweeps):
                around = reach * (2 * even - 1)
                x, best = self._sweep(score, normals, x, (x[:, None] + around).clamp(0, 1), whole=True)
                reach /= 2.5
        return x, best

    def _sweep(
        self,
        score: Score,
        normals: Sequence[Normals],
        x: Float[Tensor, "left"],
        values: Float[Tensor, "left tried"],
        *,
        whole: bool,
    ) -> tuple[Float[Tensor, "left"], float]:
        """x with each place in turn the best of its `values`, judged by the end of the run or of the interval.

        What comes before a place is drawn once for all that is tried there.
        """
        x, (left, tried) = x.clone(), values.shape
        lengths, alike = self.lengths, [_for_each(e, tried) for e in normals]
        numbers = [torch.tensor(model.frame.tasks.index(self.task)) for model in self.models]
        at = [model.stand(m, e, self.start) for model, m, e in zip(self.models, numbers, normals, strict=True)]
        ends, best = [list[Tensor]() for _ in self.models], -torch.inf

        def advance(i: int, path: Standing, rate: Tensor, k: int, e: Normals) -> Standing:
            model = self.models[i]
            order = model.frame.cutting.order
            return path.advance(model.link, rate, lengths[k], order=order, task=numbers[i], normals=e, interval=k)[0]

        for k in range(left):
            found = list[Tensor]()
            for i in range(len(self.models)):
                path, trace = at[i].repeated(tried), [end[:, None].expand(-1, tried) for end in ends[i]]
                for j in range(k, left if whole else k + 1):
                    path = advance(i, path, values[k] if j == k else x[j], j, alike[i])
                    trace.append(path.values[0])
                found.append(torch.stack(trace, -1))
            scores = score(torch.stack(found))
            x[k], best = values[k, int(scores.argmax())], float(scores.max())
            for i in range(len(self.models)):
                at[i] = advance(i, at[i], x[k], k, normals[i])
                ends[i].append(at[i].values[0])
        return x, best


def _for_each(normals: Normals, tried: int) -> Normals:
    """The same normals for everything that is tried, which is the last dimension of the draws."""
    latent, effect = (part[..., None, :].expand(-1, -1, tried, -1) for part in (normals.latent, normals.effect))
    return Normals(latent, effect, normals.start[:, None].expand(-1, tried))


def share_due_to_place(y: Float[Tensor, "models draws tried ends"]) -> Float[Tensor, "tried ends"]:
    """Var_w(E[Y | w]) / Var(Y), from draws that share their normals between places."""
    models, draws = y.shape[:2]
    expected, luck = y.mean(1, keepdim=True), y.mean(0, keepdim=True)
    left = y - expected - luck + y.mean((0, 1), keepdim=True)
    spurious = left.square().sum((0, 1)) / ((models - 1) * (draws - 1)) / draws
    due = (expected[:, 0].var(0) - spurious).clamp_min(0.0)
    return due / (due + y.var(1).mean(0)).clamp_min(1e-300)
