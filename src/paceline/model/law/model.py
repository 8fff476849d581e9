"""The law model: forecasts of whole runs under schedules that nobody has tried.

loss = law(state of the run) x (1 + misfit) + noise. `fit` fits both to traces. Draws contain the uncertainty of the
law's parameters, the differences between runs, and what the law misses. All results are in the user's units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import FitError, InputError
from paceline.model.forecast import Forecast, check_draws, check_steps
from paceline.model.law import misfit
from paceline.model.law.ancestry import shared_until
from paceline.model.law.fit import LawFit, fit
from paceline.model.law.prediction import law_at, predict
from paceline.model.law.rows import rows_of, runs_with_rows
from paceline.model.law.search import Problem
from paceline.model.law.settings import SEARCH
from paceline.model.law.stability import without_diverged
from paceline.model.law.state import SchedulePieces
from paceline.model.law.units import Units
from paceline.model.linalg import few_threads
from paceline.model.preprocess import check_traces
from paceline.traces import Schedule, Trace

if TYPE_CHECKING:
    from paceline.model.law.plan import PlannedSchedule

STEPS_OF_A_FORECAST = 50  # by default, evenly in log steps
RATE_CHANGE = 1.5  # factor by which a rate has to change within a run to show what a lower rate does


class Caveat(StrEnum):
    """What the runs behind a law cannot show."""

    ONE_RATE = "all runs had the same rate: what another rate would do is a guess"
    NO_CHANGE = "no run has changed its rate yet: how fast a lower rate pays off is a guess"


@dataclass(frozen=True, slots=True, eq=False)
class LawModel:
    """A fitted law with its misfit; `fit` makes one.

    >>> steps = np.arange(10, 201, 10)
    >>> traces = [Trace(steps, 1 + (lr * steps) ** -0.5, Schedule.constant(lr, 200)) for lr in (0.003, 0.03)]
    >>> model = LawModel.fit(traces)
    >>> forecast = model.forecast(Schedule.of("cosine", 0.03, 400), steps=[300, 400])
    >>> bool(forecast.quantile(0.1)[1] < forecast.median[1] < forecast.quantile(0.9)[1])
    True

    Args:
        traces: all runs that were passed to `fit`.
        fitted_runs: those it was fitted to.
        tasks: names of the tasks; empty if all runs are of one task.
        law: the fit.
    """

    traces: tuple[Trace, ...]
    fitted_runs: tuple[Trace, ...]
    tasks: tuple[str, ...]
    law: LawFit

    @classmethod
    def fit(
        cls,
        traces: Sequence[Trace],
        *,
        tasks: int | None = None,
        start: "LawModel | None" = None,
    ) -> "LawModel":
        """Fit to traces of one objective, from a single one to hundreds.

        Args:
            traces: recorded runs; forks start from the state of their parents. Runs that failed or diverged are left
                out, as long as there are others.
            tasks: dimensions of the task embedding; None treats all traces as one task. Each task then has
                coefficients of its own around shared ones.
            start: a model of fewer observations, to start from.
        """
        traces = check_traces(traces)
        if tasks is None:
            return cls.fit_tasks(traces, (), np.eye(1), start=start)
        from paceline.model.law.task_correlation import task_correlation  # late: needed with tasks only

        names = tuple(sorted({trace.task for trace in traces}))
        return cls.fit_tasks(traces, names, task_correlation(traces, tasks), start=start)

    @classmethod
    def fit_tasks(
        cls,
        traces: Sequence[Trace],
        tasks: tuple[str, ...],
        correlation: Float[np.ndarray, "tasks tasks"],
        *,
        start: "LawModel | None" = None,
    ) -> "LawModel":
        """Fit with a known correlation between tasks.

        Args:
            traces: recorded runs.
            tasks: names of the tasks; empty if all runs are of one task.
            correlation: between tasks, of what the law misses.
            start: a model of fewer observations, to start from.
        """
        stable = without_diverged(traces)
        units = Units.of(stable)
        rows = rows_of(stable, units, tasks)
        if rows is None:
            raise InputError(
                f"expected at least one finite value after the first step, got none in {len(traces)} run(s): "
                "record values during the run"
            )
        runs = runs_with_rows(stable, units)
        until = np.array([[shared_until(a, b) for b in runs] for a in runs])
        try:
            with few_threads():
                law = fit(Problem(rows, units, until, correlation), start=None if start is None else start.law)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise FitError(
                f"the law could not be fitted to {len(runs)} run(s): {error}; check that their values are right"
            ) from error
        return cls(tuple(traces), tuple(runs), tasks, law)

    def update(self, traces: Sequence[Trace]) -> "LawModel":
        """The model with further runs, or longer traces of the same name; the fit starts from this one."""
        objective = self.traces[0].objective
        if other := [trace.objective for trace in traces if trace.objective != objective]:
            raise InputError(
                f"update takes traces with the objective {objective}, got {other[0]}: fit another model to these"
            )
        unknown = sorted({trace.task for trace in traces} - set(self.tasks)) if self.tasks else []
        if unknown:
            raise InputError(f"update takes runs of the tasks {list(self.tasks)}, got {unknown}: fit a new model")
        names = {trace.name for trace in traces if trace.name}
        others = [trace for trace in self.traces if trace.name not in names]
        return LawModel.fit_tasks([*others, *traces], self.tasks, self.law.problem.correlation, start=self)

    @property
    def units(self) -> Units:
        """Units of losses, rates and S."""
        return self.law.problem.units

    @property
    def noise(self) -> float:
        """Relative deviation of one observation, at the end of a typical run."""
        rows = self.law.problem.rows
        last = [rows.single_noise[rows.run == run][-1] for run in range(len(self.fitted_runs))]
        return float(np.exp(self.law.log_scales[misfit.NOISE]) * np.median(last))

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What these runs cannot show."""
        rows, caveats = self.law.problem.rows, list[Caveat]()
        rates = [10 ** rows.log10_lr[rows.run == run] for run in range(len(self.fitted_runs))]
        if len({float(f"{np.median(r):.2g}") for r in rates}) == 1:
            caveats.append(Caveat.ONE_RATE)
        if max(float(r.max() / r.min()) for r in rates) < RATE_CHANGE:
            caveats.append(Caveat.NO_CHANGE)
        return tuple(caveats)

    def forecast(
        self,
        schedule: Schedule,
        steps: "Sequence[int] | Int[np.ndarray, 'steps'] | None" = None,
        *,
        start: Trace | None = None,
        task: str | None = None,
        draws: int = 1000,
        noise: bool = True,
        generator: torch.Generator | None = None,
    ) -> Forecast:
        """Forecast a run under a schedule; arguments as in `TraceModel.forecast`.

        By default the forecast has fifty steps, evenly in log steps.
        """
        begin = 0 if start is None else start.last_step
        if steps is None:
            first = min(max(begin + 1, self.units.first_step), schedule.steps)
            steps = np.unique(np.geomspace(first, schedule.steps, STEPS_OF_A_FORECAST).astype(int))
        at = check_steps(steps, max(begin, 1))
        check_draws(draws)
        random = torch.Generator().manual_seed(0) if generator is None else generator
        number = self.task_number(task if start is None else start.task)
        with few_threads():
            prediction = predict(self.law, self.fitted_runs, schedule, at, start, number, self.noise)
        which = torch.arange(draws) % SEARCH.draws
        normals = torch.randn(draws, prediction.root.shape[1], dtype=torch.float64, generator=random)
        bound = SEARCH.largest_residual
        residual = (prediction.mean[which] + normals @ prediction.root.T).clamp(-bound, bound)
        if noise:
            residual = residual + self.noise * torch.randn(residual.shape, dtype=torch.float64, generator=random)
        return Forecast(at, self.units.to_values((prediction.law[which] * torch.exp(residual)).numpy()))

    def final(
        self,
        schedules: Sequence[Schedule],
        *,
        start: Trace | None = None,
        task: str | None = None,
        draws: int = SEARCH.draws,
        seed: int = 0,
    ) -> Float[np.ndarray, "draws schedules"]:
        """Draws of the value at the end of each schedule, without noise. Draw i has the same parameters for all."""
        return np.stack(
            [
                self.forecast(
                    schedule,
                    [schedule.steps],
                    start=start,
                    task=task,
                    draws=draws,
                    noise=False,
                    generator=torch.Generator().manual_seed(seed),
                ).draws[:, 0]
                for schedule in schedules
            ],
            axis=1,
        )

    def quantile(
        self, alpha: float, rates: "Sequence[float] | np.ndarray", *, start: Trace, stop: int
    ) -> Float[np.ndarray, "candidates"]:
        """The alpha-quantile at step `stop` for each candidate rate or multiplier; see `TraceModel.quantile`."""
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie in (0, 1), got {alpha}: 0.5 is the median")
        level = alpha if self.units.sign > 0 else 1 - alpha
        past = start.schedule
        schedules = [
            past.join(Schedule([rate], [0, past.steps], base=past.base), start.last_step) for rate in map(float, rates)
        ]
        forecasts = [self.forecast(s, [stop], start=start, draws=SEARCH.draws, noise=False) for s in schedules]
        return np.array([forecast.quantile(level)[0] for forecast in forecasts])

    def plan(
        self,
        *,
        steps: int,
        lr: "tuple[float, float]",
        start: Trace | None = None,
        family: str = "shape",
        quantile: float = 0.5,
        task: str | None = None,
        intervals: int = 10,
    ) -> "PlannedSchedule":
        """The schedule with the best forecast at its end; see `plan.plan`."""
        from paceline.model.law.plan import plan  # late: that module needs this one

        with few_threads():
            return plan(
                self,
                steps=steps,
                lr=lr,
                start=start,
                family=family,
                quantile=quantile,
                task=task,
                intervals=intervals,
            )

    def task_number(self, task: str | None) -> int:
        """Number of a task; 0 if there are none."""
        if not self.tasks:
            return 0
        if task not in self.tasks:
            raise InputError(f"task must be one of those fitted, {list(self.tasks)}, got {task!r}: name the run's task")
        return self.tasks.index(task)

    def law_at(self, pieces: SchedulePieces, task: int) -> Float[Tensor, "draws steps"]:
        """The law at the steps of a schedule, for each draw of its parameters; differentiable in the rates."""
        return law_at(self.law, pieces, task)
