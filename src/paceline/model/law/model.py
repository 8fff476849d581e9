"""The trace model with the law as its mean: forecasts of whole runs under schedules that nobody has run.

loss = law(state of the run) x (1 + misfit) + noise. `fit` learns both from traces; draws carry the uncertainty of the
law's parameters, how runs differ, and what the law misses. Everything that comes out is in the user's units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import FitError, InputError
from paceline.model.forecast import Forecast, steps_ahead
from paceline.model.law import misfit
from paceline.model.law.fit import DRAWS, Fitted, Problem, fit
from paceline.model.law.misfit import Places
from paceline.model.law.rows import Units, holding, observed, rows_of, split, stretches, used
from paceline.model.law.state import Pieces
from paceline.model.law.terms import still_to_learn, terms
from paceline.model.linalg import few_threads, tensor
from paceline.model.preprocess import check_traces
from paceline.traces import Schedule, Trace

if TYPE_CHECKING:
    from paceline.model.law.plan import PlannedSchedule

KNOWN_ROWS = 20  # of a run that was not fitted, which a forecast goes on from
FARTHEST = 3.0  # most that a residual may move the logarithm of a forecast


@dataclass(frozen=True, slots=True, eq=False)
class LawModel:
    """A fitted law with its misfit, read off the `known` runs; `fit` makes one.

    >>> steps = np.arange(10, 201, 10)
    >>> traces = [Trace(steps, 1 + (lr * steps) ** -0.5, Schedule.constant(lr, 200)) for lr in (0.003, 0.03)]
    >>> model = LawModel.fit(traces)
    >>> forecast = model.forecast(Schedule.of("cosine", 0.03, 400), steps=[300, 400])
    >>> bool(forecast.quantile(0.1)[1] < forecast.median[1] < forecast.quantile(0.9)[1])
    True
    """

    traces: tuple[Trace, ...]
    known: tuple[Trace, ...]
    tasks: tuple[str, ...]
    fitted: Fitted

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
            traces: recorded runs; forks take the state of their parents along. Runs that failed or diverged are left
                out, as long as there are others.
            tasks: dimensions of the task embedding; None treats all traces as one task. Each task then has
                coefficients of its own around shared ones.
            start: a model of fewer observations, to begin from.
        """
        traces = check_traces(traces)
        if tasks is None:
            return cls.fit_tasks(traces, (), np.eye(1), start=start)
        from paceline.model.law.task_correlation import task_correlation  # needed with tasks only

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
            start: a model of fewer observations, to begin from.
        """
        sound = holding(traces)
        units = Units.of(sound)
        rows = rows_of(sound, units, tasks)
        if rows is None:
            raise InputError(
                f"expected at least one finite value after the first step, got none in {len(traces)} run(s): "
                "record values as the run goes"
            )
        known = used(sound, units)
        splits = np.array([[split(a, b) for b in known] for a in known])
        try:
            with few_threads():
                fitted = fit(Problem(rows, units, splits, correlation), start=None if start is None else start.fitted)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise FitError(
                f"the law could not be fitted to {len(known)} run(s): {error}; check their values"
            ) from error
        return cls(tuple(traces), tuple(known), tasks, fitted)

    def update(self, traces: Sequence[Trace]) -> "LawModel":
        """The model with further runs, or longer ones of the same name; starts from this one."""
        if any(trace.objective != self.traces[0].objective for trace in traces):
            raise InputError("update takes traces of the objective the model was fitted to: fit another model to these")
        unknown = sorted({trace.task for trace in traces} - set(self.tasks)) if self.tasks else []
        if unknown:
            raise InputError(f"update takes runs of the tasks {list(self.tasks)}, got {unknown}: fit a new model")
        fresh = {trace.name for trace in traces if trace.name}
        kept = [trace for trace in self.traces if trace.name not in fresh]
        return LawModel.fit_tasks([*kept, *traces], self.tasks, self.fitted.problem.alike, start=self)

    @property
    def units(self) -> Units:
        """Units of losses, rates and S."""
        return self.fitted.problem.units

    @property
    def noise(self) -> float:
        """Relative deviation of one observation, at the end of a typical run."""
        rows = self.fitted.problem.rows
        last = [rows.single[rows.run == run][-1] for run in self._runs()]
        return float(np.exp(self.fitted.log_scales[6]) * np.median(last))

    @property
    def caveats(self) -> tuple[str, ...]:
        """What these runs cannot tell, in words."""
        rates = [10 ** self.fitted.problem.rows.log10_lr[self.fitted.problem.rows.run == i] for i in self._runs()]
        words = list[str]()
        if len({float(f"{np.median(r):.2g}") for r in rates}) == 1:
            words.append("all runs had the same rate: what another rate would do is a guess")
        if max(float(r.max() / r.min()) for r in rates) < 1.5:
            words.append("no run has changed its rate yet: how fast a lower rate pays off is a guess")
        return tuple(words)

    def _runs(self) -> range:
        return range(len(self.fitted.problem.splits))

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
        """Forecast a run under a schedule; arguments as in `TraceModel.forecast`."""
        begin = 0 if start is None else start.last_step
        if steps is None:
            first = min(max(begin + 1, self.units.first_step), schedule.steps)
            steps = np.unique(np.geomspace(first, schedule.steps, 50).astype(int))
        at = steps_ahead(steps, max(begin, 1))
        if draws < 1:
            raise InputError(f"draws must be at least 1, got {draws}: 1000 give steady quantiles")
        random = torch.Generator().manual_seed(0) if generator is None else generator
        with few_threads():
            law, mean, root = self._ahead(schedule, at, start, self.task_number(task if start is None else start.task))
        which = torch.arange(draws) % DRAWS
        normals = torch.randn(draws, root.shape[1], dtype=torch.float64, generator=random)
        exponent = (mean[which] + normals @ root.T).clamp(-FARTHEST, FARTHEST)
        if noise:
            exponent = exponent + self.noise * torch.randn(exponent.shape, dtype=torch.float64, generator=random)
        return Forecast(at, self.units.values((law[which] * torch.exp(exponent)).numpy()))

    def final(
        self,
        schedules: Sequence[Schedule],
        *,
        start: Trace | None = None,
        task: str | None = None,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> Float[np.ndarray, "draws schedules"]:
        """Draws of the value at the end of each schedule, without noise; draw i is of the same world for all."""
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
            raise InputError(f"alpha must lie in (0, 1), got {alpha}")
        level = alpha if self.units.sign > 0 else 1 - alpha
        past = start.schedule
        ahead = [past.join(Schedule([r], [0, past.steps], base=past.base), start.last_step) for r in map(float, rates)]
        forecasts = [self.forecast(s, [stop], start=start, draws=DRAWS, noise=False) for s in ahead]
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
        from paceline.model.law.plan import plan  # it needs this module

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
        """Number of a task, 0 where there are none."""
        if not self.tasks:
            return 0
        if task not in self.tasks:
            raise InputError(f"task must be one of those fitted, {list(self.tasks)}, got {task!r}: name the run's task")
        return self.tasks.index(task)

    def law(self, pieces: Pieces, task: int) -> Float[Tensor, "draws steps"]:
        """The law at the steps of a schedule, for each draw of its parameters; differentiable in the rates."""
        fitted, units = self.fitted, self.units
        shapes, coefficients = tensor(fitted.shapes), tensor(fitted.draws[:, task])
        noise = pieces.noise(shapes[:, 2], units.reference, units.largest)
        columns = terms(shapes, pieces.rate_sum()[0], noise, units.largest)
        return (columns @ coefficients[..., None])[..., 0]

    def _ahead(
        self, schedule: Schedule, at: Int[np.ndarray, "steps"], start: Trace | None, task: int
    ) -> tuple[Float[Tensor, "draws steps"], Float[Tensor, "draws steps"], Float[Tensor, "steps steps"]]:
        """The law ahead, and mean and a square root of the covariance of log(loss / law) given all observations."""
        before, losses, counts = self._unseen(start)
        steps = np.concatenate([before, at])
        if len(before) and before[-1] == at[0]:  # the level now, as a forecast: seen with noise
            steps = np.concatenate([before, at[1:]])
        pieces = Pieces.of(schedule, steps)
        law = self.law(pieces, task)
        places = self._places(schedule, pieces, steps, task)
        fitted = self.fitted
        mine = np.array([-np.inf if start is None else split(start, t) for t in self.known])
        splits = np.vstack([np.column_stack([fitted.problem.splits, mine]), np.append(mine, np.inf)])
        alike = fitted.problem.alike
        cross = misfit.covariance(fitted.log_scales, places, fitted.places, splits, alike) @ fitted.white.T
        covariance = misfit.covariance(fitted.log_scales, places, places, splits, alike) - cross @ cross.T
        mean = fitted.residuals @ cross.T
        k = len(before)
        if k:
            seen = covariance[:k, :k] + np.diag(self.noise**2 / counts) + 1e-12 * np.eye(k)
            gain = np.linalg.solve(seen, covariance[:k]).T
            mean = mean + (np.log(losses / law.numpy()[:, :k]) - mean[:, :k]) @ gain.T
            covariance = covariance - gain @ covariance[:k]
        keep = len(places.run) - len(at)
        values, vectors = np.linalg.eigh(covariance[keep:, keep:])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return law[:, keep:], tensor(mean[:, keep:]), tensor(root)

    def _places(self, schedule: Schedule, pieces: Pieces, steps: Int[np.ndarray, "steps"], task: int) -> Places:
        fitted, units = self.fitted, self.units
        shape, coefficients = tensor(fitted.shape), tensor(fitted.coefficients[task])
        last = max(float(fitted.places.log_step.max()), 0.0)
        rate_sum = pieces.rate_sum()[0]
        columns = terms(shape, rate_sum, pieces.noise(shape[2:3], units.reference, units.largest)[0], units.largest)
        law = (columns @ coefficients).numpy()
        left, slope = (part.numpy() for part in still_to_learn(shape, coefficients, rate_sum, units.largest))
        seen = Pieces.of(schedule, np.array([max(1, round(np.exp(last)))])).rate_sum()[0]
        before = still_to_learn(shape, coefficients, seen, units.largest)[0].numpy()
        log_step = np.log(steps)
        return Places(
            log_step,
            np.log10(pieces.last.numpy()),
            np.maximum(slope / law / fitted.speed, misfit.STEADY),
            np.ones(len(steps)),
            np.where(log_step > last, np.maximum(0.0, before - left), 0.0) / law,
            np.full(len(steps), len(fitted.problem.splits)),
            np.full(len(steps), task),
        )

    def _unseen(self, start: Trace | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, losses and counts of a run so far that the fit has not seen, thinned."""
        nothing = np.zeros(0, dtype=int), np.zeros(0), np.zeros(0)
        if start is None:
            return nothing
        until = [np.exp(split(start, trace)) for trace in self.known]
        seen = max((min(u, float(t.last_step)) for u, t in zip(until, self.known, strict=True)), default=0.0)
        steps, losses = observed(start, self.units, whole=True)
        fresh = steps > seen
        if not fresh.any():
            return nothing
        stretch = stretches(steps[fresh], KNOWN_ROWS)
        count = np.bincount(stretch).astype(float)
        return (
            (np.bincount(stretch, steps[fresh]) / count).astype(int),
            np.bincount(stretch, losses[fresh]) / count,
            count,
        )
