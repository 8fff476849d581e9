"""A new task as a mixture over where it may lie: the best rest of a schedule, and the most informative beginning."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import Normals, TraceModel, few_threads, tensor
from paceline.strategy.multitask import Space
from paceline.strategy.prospect import Prospect, climb, quantile, search
from paceline.traces import Trace


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
        return tensor(self.models[0].encoder.future(schedule, begin).lengths)

    def best_rest(
        self,
        alpha: float,
        *,
        draws: int,
        grid: int,
        sweeps: int,
        climbs: int,
        generator: torch.Generator,
    ) -> tuple[Float[Tensor, "left"], float]:
        """The rest of the schedule with the best alpha-quantile of the final value, and that quantile, scaled.

        Found in sweeps over its intervals, then by `climbs` gradient steps of all together.
        """
        left, latents = len(self.lengths), self.models[0].link.latents
        prospects = self._prospects([Normals.of(latents, draws, left, generator) for _ in self.models])
        with few_threads():
            x, _ = search(prospects, quantile(alpha), left, grid=grid, sweeps=sweeps)
            x = climb(prospects, alpha, x, climbs)
            with torch.no_grad():
                finals = torch.cat([prospect.finals(x) for prospect in prospects], 1)
        return x[0], float(torch.quantile(finals, alpha))

    def best_probe(
        self, intervals: int, *, draws: int, grid: int, sweeps: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "probe"], float]:
        """The rates of the first intervals from which most is learnt about where the task lies, and how much.

        x_{:i} = argmax sum_t Var_w(E[Y(x_{:i}, t, w) | w]) / Var(Y(x_{:i}, t, w)), over the ends of the intervals, as
        the paper's prose has it (docs/design.md). All places meet the same normals; what their means differ by beyond
        that is the main effect of a two-way layout.
        """
        same = Normals.of(self.models[0].link.latents, draws, intervals, generator)

        def score(y: Float[Tensor, "models one draws tried ends"]) -> Float[Tensor, "one tried"]:
            return share_due_to_place(y[:, 0]).mean(-1)[None]

        with few_threads():
            x, share = search(self._prospects([same] * len(self.models)), score, intervals, grid=grid, sweeps=sweeps)
        return x[0], float(share)

    def _prospects(self, normals: Sequence[Normals]) -> list[Prospect]:
        """The run to come, at each place."""
        lengths = self.lengths
        numbers = [torch.tensor([model.encoder.tasks.index(self.task)]) for model in self.models]
        return [
            Prospect(model, number, lengths, e, self.start)
            for model, number, e in zip(self.models, numbers, normals, strict=True)
        ]


def share_due_to_place(y: Float[Tensor, "models draws tried ends"]) -> Float[Tensor, "tried ends"]:
    """Var_w(E[Y | w]) / Var(Y), from draws that share their normals between places."""
    models, draws = y.shape[:2]
    expected, luck = y.mean(1, keepdim=True), y.mean(0, keepdim=True)
    left = y - expected - luck + y.mean((0, 1), keepdim=True)
    spurious = left.square().sum((0, 1)) / ((models - 1) * (draws - 1)) / draws
    due = (expected[:, 0].var(0) - spurious).clamp_min(0.0)
    return due / (due + y.var(1).mean(0)).clamp_min(1e-300)
