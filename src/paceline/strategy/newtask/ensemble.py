"""A new task as an ensemble of models, one for each location it may have: the best continuation, and the best probe."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import Normals, TraceModel, few_threads, tensor
from paceline.settings import SearchBudget
from paceline.strategy.future_runs import FutureRuns, climb, final_mean, final_quantile, search
from paceline.strategy.multitask import Space
from paceline.traces import Trace


@dataclass(frozen=True, slots=True, eq=False)
class TaskEnsemble:
    """Models of one task at several locations, equally likely, and its run so far.

    Args:
        models: one per location.
        task: its name.
        space: the schedules searched.
        start: the run so far; None before it begins.
        done: intervals that the run has behind it.
        highest: the highest x of the task (`SafeRates.highest`); 1 by default.
    """

    models: tuple[TraceModel, ...]
    task: str
    space: Space
    start: Trace | None = None
    done: int = 0
    highest: "Float[Tensor, 'one'] | None" = None

    @property
    def lengths(self) -> Float[Tensor, "left"]:
        """Of the intervals still to come."""
        if self.start is None:
            return self.space.lengths(self.models[0])
        schedule, begin = self.space.schedule([0.5] * self.space.intervals), int(self.space.change_points[self.done])
        return tensor(self.models[0].encoder.future(schedule, begin).lengths)

    def best_continuation(
        self, alpha: "float | None", budget: SearchBudget, generator: torch.Generator
    ) -> tuple[Float[Tensor, "left"], float]:
        """The rest of the schedule with the best alpha-quantile of the final value, and that quantile, scaled.

        The same of the mean if alpha is None.
        """
        score = final_mean if alpha is None else final_quantile(alpha)
        left, latents = len(self.lengths), self.models[0].link.latents
        futures = self._future_runs([Normals.draw(latents, budget.draws, left, generator) for _ in self.models])
        with few_threads():
            x, _ = search(futures, score, left, budget, highest=self.highest)
            x = climb(futures, alpha, x, budget.gradient_steps, self.highest)
            with torch.no_grad():
                finals = torch.cat([runs.finals(x) for runs in futures], 1)
        return x[0], float(finals.mean() if alpha is None else torch.quantile(finals, alpha))

    def best_probe(
        self, intervals: int, budget: SearchBudget, generator: torch.Generator
    ) -> tuple[Float[Tensor, "probe"], float]:
        """The rates of the first intervals that tell most about the task's location, and how much that is.

        x_{:i} = argmax sum_t Var_w(E[Y(x_{:i}, t, w) | w]) / Var(Y(x_{:i}, t, w)), over the ends of the intervals, as
        the paper's prose has it (docs/design.md). All models use the same normals. The difference of their means beyond
        these is the main effect of a two-way layout.
        """
        shared = Normals.draw(self.models[0].link.latents, budget.draws, intervals, generator)

        def score(y: Float[Tensor, "models one draws tried ends"]) -> Float[Tensor, "one tried"]:
            return location_share(y[:, 0]).mean(-1)[None]

        with few_threads():
            futures = self._future_runs([shared] * len(self.models))
            x, share = search(futures, score, intervals, budget, highest=self.highest)
        return x[0], float(share)

    def _future_runs(self, normals: Sequence[Normals]) -> list[FutureRuns]:
        """The run to come under each model."""
        return [
            FutureRuns.of(model, [self.task], self.lengths, own, self.start)
            for model, own in zip(self.models, normals, strict=True)
        ]


def location_share(y: Float[Tensor, "models draws tried ends"]) -> Float[Tensor, "tried ends"]:
    """Var_w(E[Y | w]) / Var(Y), from draws that share their normals between models."""
    models, draws = y.shape[:2]
    expected, luck = y.mean(1, keepdim=True), y.mean(0, keepdim=True)
    residual = y - expected - luck + y.mean((0, 1), keepdim=True)
    spurious = residual.square().sum((0, 1)) / ((models - 1) * (draws - 1)) / draws
    due = (expected[:, 0].var(0) - spurious).clamp_min(0.0)
    return due / (due + y.var(1).mean(0)).clamp_min(1e-300)
