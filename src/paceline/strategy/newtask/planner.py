"""What a run of a new task does next, computed from the family's model and the observations so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import TaskPosterior, TraceModel
from paceline.settings import NewTaskSettings
from paceline.strategy.base import Fork, History
from paceline.strategy.multitask import ANSWER_QUANTILES, Answer, SafeRates, Space, as_floats
from paceline.strategy.newtask.ensemble import TaskEnsemble
from paceline.strategy.newtask.location import head_until, locate
from paceline.strategy.newtask.random_streams import MODELS, PROBE_DRAWS, PROBE_MODELS, SEARCH, generator
from paceline.strategy.newtask.rate_limit import RateLimit, is_beyond_family, rate_limit
from paceline.traces import Trace

FORECAST_DRAWS = 200  # of the final value under each model
FORK_ALPHA, FORK_ALPHA_WIDTH = 0.05, 0.9  # the quantiles of forks after the first: the lowest, and the width of all


@dataclass(frozen=True, slots=True, eq=False)
class Continuation:
    """The rates of a fork from a change point on, and the quantile of the final value that they should reach.

    Args:
        fork: the fork; None before the first interval.
        start: the change point from which it was planned.
        alpha: order of the quantile; None for the mean.
        x: the rates.
        score: the quantile, scaled.
        value: the quantile, in the user's units.
    """

    fork: Fork | None
    start: int
    alpha: float | None
    x: tuple[float, ...]
    score: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class RunPlanner:
    """Plans a run of a new task, at one decision.

    Args:
        model: of the family.
        space: the schedules searched.
        task: name of the new task.
        settings: how it is tuned.
        history: what was observed so far.
        known_runs: of the family.
    """

    model: TraceModel
    space: Space
    task: str
    settings: NewTaskSettings
    history: History
    known_runs: Sequence[Trace] = ()

    def location(self, interval: int) -> TaskPosterior:
        """The posterior of the task's location by the first intervals of all forks."""
        end = int(self.space.change_points[interval])
        return locate(self.model, self.task, self.history, end, interval, self.settings)

    def probe(self, location: TaskPosterior, intervals: int) -> tuple[tuple[float, ...], float]:
        """The rates of the probe, and the share of the variance that is due to the location."""
        models = location.sample(2 * self.settings.models, generator(self.history, PROBE_MODELS))
        ensemble = TaskEnsemble(models, self.task, self.space, highest=self._highest(0, min(self.settings.alphas)))
        x, share = ensemble.best_probe(intervals, self.settings.search, generator(self.history, PROBE_DRAWS))
        return as_floats(x), share

    def continuation(self, location: TaskPosterior, fork: Fork | None, start: int, number: int = 0) -> Continuation:
        """The best rates from change point `start` on, for the first fork or for another."""
        search, count = self.settings.search, self.settings.models
        average = self.settings.location == "posterior"
        models = (
            location.sample(count, generator(self.history, MODELS + start)) if average else (location.most_probable(),)
        )
        alpha, run = fork_alpha(self.settings, self.space.intervals, start, number), self._run_until(fork, start)
        highest = self._highest(start, alpha if number and alpha else min(self.settings.alphas))  # one run has to last
        x, score = TaskEnsemble(models, self.task, self.space, run, start, highest).best_continuation(
            alpha, replace(search, draws=search.draws * count // len(models)), generator(self.history, SEARCH + start)
        )
        value = float(self.model.encoder.to_user(torch.tensor([score], dtype=torch.float64))[0])
        return Continuation(fork, start, alpha, as_floats(x), score, value)

    def answer(self) -> Answer:
        """The whole schedule before the first step, and the final values it is expected to reach."""
        location = self.location(0)
        schedule = self.space.schedule(self.continuation(location, None, 0).x)
        models = location.sample(self.settings.models, generator(self.history, MODELS))
        draws = [
            model.forecast(schedule, [self.space.steps], task=self.task, draws=FORECAST_DRAWS, noise=False).draws
            for model in models
        ]
        sign = self.model.encoder.segmenter.objective.sign
        careful, median, optimistic = sign * np.quantile(sign * np.concatenate(draws), ANSWER_QUANTILES)
        return Answer(schedule, (float(careful), float(median), float(optimistic)))

    def limit(self, location: TaskPosterior, fork: Fork | None, k: int) -> RateLimit:
        """How high interval k may go. A plan that is made once is run as it is."""
        if fork is None or self.settings.method != "dynamic":
            return RateLimit()
        beyond = fork.trace is not None and is_beyond_family(
            self.model, location.most_probable(), self.task, fork.trace
        )
        return rate_limit(self.space, fork.schedule, beyond=beyond, last=k == self.space.intervals - 1)

    def _highest(self, start: int, risk: float) -> Float[Tensor, "one"]:
        """The highest x by the family's runs, by this one up to change point `start`, and by all of it that failed."""
        end = int(self.space.change_points[start])
        own = [trace if trace.failed else head_until(trace, end) for trace in self.history.traces()]
        runs = [*self.known_runs, *(replace(trace, task=self.task) for trace in own if trace is not None)]
        return SafeRates.fit(runs, self.space).highest([self.task], risk)

    def _run_until(self, fork: Fork | None, start: int) -> Trace | None:
        """The observations of a fork up to a change point; None before the first interval."""
        trace = fork.trace if fork is not None and start else None
        while trace is not None and trace.steps[0] > self.space.change_points[start]:
            trace = trace.parent  # the fork was cloned later, by a rollback
        if trace is not None:
            trace = head_until(trace, int(self.space.change_points[start]))
        return None if trace is None else replace(trace, task=self.task)


def fork_alpha(settings: NewTaskSettings, intervals: int, done: int, number: int = 0) -> float | None:
    """The quantile that a fork maximises after so many intervals; forks after the first are spread evenly.

    None if it maximises the mean.
    """
    if settings.statistic == "mean":
        return None
    first, last = settings.alphas if settings.method == "dynamic" else settings.alphas[1:] * 2
    alpha = first + (last - first) * done / max(intervals - 1, 1)
    if number == 0:
        return alpha
    return FORK_ALPHA + (alpha - FORK_ALPHA + FORK_ALPHA_WIDTH * number / settings.forks) % FORK_ALPHA_WIDTH


def planned_rates(space: Space, plan: Continuation, k: int) -> list[float]:
    """The rates of a plan from interval k on."""
    return space.lr_range.from_unit(np.array(plan.x[k - plan.start :])).tolist()
