"""The trace model: latent Gaussian processes that say how far a run moves, given its value and its rate.

y(t) = Y_k + eta(f(Y_k, .., Y_{k-q+1}, x_k, .., x_{k-q+1}), t - T_k) + e(t)   for T_k <= t < T_{k+1}

(paper, section 2). `TraceModel` is what users call. It answers in the user's units. `fit_state` fits, `paths` draws and
`quantiles` computes one-step quantiles.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.encoder import FutureIntervals, TraceEncoder
from paceline.model.failure import FailureModel, failed_intervals
from paceline.model.fit_state import FitState
from paceline.model.forecast import Forecast, check_draws, check_steps
from paceline.model.kernels import Hyperparameters
from paceline.model.linalg import few_threads, tensor, zeros
from paceline.model.link_names import link_of
from paceline.model.links import Link
from paceline.model.normals import Normals
from paceline.model.paths import Draw, RunState, draw_path, latent_input
from paceline.model.posterior import Posterior, solve_posterior
from paceline.model.preprocess import check_traces
from paceline.model.process import ConditionedProcess
from paceline.model.quantiles import increment_quantile
from paceline.model.settings import FitSettings
from paceline.model.start_distribution import StartDistribution
from paceline.model.task_embedding import as_location, distances, on_principal_axes
from paceline.traces import (
    ClockName,
    Coordinates,
    Intervals,
    LearningRateRange,
    Schedule,
    Segment,
    Segmenter,
    TaskCoordinates,
    Trace,
)

if TYPE_CHECKING:
    from paceline.model.law import LawModel


@dataclass(frozen=True, slots=True, eq=False)
class TraceModel:
    """A fitted model of traces; `fit` makes one, `update` adds runs to it, `condition_on` looks ahead.

    >>> steps = np.arange(0, 101, 10)
    >>> traces = [Trace(steps, 3 * np.exp(-lr * steps), Schedule.constant(lr, 100)) for lr in (0.003, 0.03)]
    >>> model = TraceModel.fit(traces, intervals=5)
    >>> forecast = model.forecast(Schedule.constant(0.01, 100), steps=[50, 100])
    >>> bool(forecast.quantile(0.1)[1] < forecast.mean[1] < forecast.quantile(0.9)[1])
    True

    Args:
        state: what the fit left behind.
        process: the latent functions, given the draws that the model was conditioned on.
    """

    state: FitState
    process: ConditionedProcess

    @overload
    @classmethod
    def fit(
        cls,
        traces: Sequence[Trace],
        *,
        mean: Literal["constant"] = "constant",
        intervals: Intervals = None,
        clock: ClockName = "step",
        link: "str | Link" = "linear",
        order: int = 1,
        inducing: int = 150,
        tasks: int | None = None,
        lr: "tuple[float, float] | LearningRateRange | None" = None,
        anchor_noise: bool = True,
        random_effect: bool = True,
        summed_rate: bool = False,
        end_share: float = 1.0,
        at: "Coordinates | None" = None,
        callback: "Callable[[float], None] | None" = None,
    ) -> "TraceModel": ...

    @overload
    @classmethod
    def fit(cls, traces: Sequence[Trace], *, mean: Literal["law"], tasks: int | None = None) -> "LawModel": ...

    @classmethod
    def fit(
        cls,
        traces: Sequence[Trace],
        *,
        mean: str = "constant",
        intervals: Intervals = None,
        clock: ClockName = "step",
        link: "str | Link" = "linear",
        order: int = 1,
        inducing: int = 150,
        tasks: int | None = None,
        lr: "tuple[float, float] | LearningRateRange | None" = None,
        anchor_noise: bool = True,
        random_effect: bool = True,
        summed_rate: bool = False,
        end_share: float = 1.0,
        at: "Coordinates | None" = None,
        callback: "Callable[[float], None] | None" = None,
    ) -> "TraceModel | LawModel":
        """Fit the model to traces of one objective.

        Args:
            traces: recorded runs. A fork holds only its own observations, so pass its parent too.
            mean: "constant" fits the paper's model of the next interval and returns a `TraceModel`. "law" is short for
                `LawModel.fit(traces, tasks=tasks)`: it returns a `LawModel`, which forecasts and plans whole runs and
                takes no setting but `tasks`.
            intervals: how many equal intervals, or the change points. By default each run is split at the change points
                of its own schedule, or into twenty equal intervals if it has none.
            clock: "step", or "log" for a logarithmic clock that starts at 1 % of the run.
            link: "linear", "exponential", one of the learning curves of Domhan et al. ("pow4", "weibull", ...; all are
                in `paceline.model.LINKS`), or a `Link`; "signed" or "relaxing" for traces that may get worse when the
                rate increases.
            order: q, how many past intervals the next increment depends on: 1, 2 or 3.
            inducing: most inducing points. With fewer intervals, all of them are inducing points.
            tasks: dimensions of the task embedding. None treats all traces as one task; with 0 tasks share nothing.
            lr: bounds of the rate, which scale x; by default the lowest and highest rate observed.
            anchor_noise: whether to marginalise the error of each interval's first value. False takes these values as
                exact, and a forecast begins at the last value of the run, as in the paper.
            random_effect: whether intervals may differ beyond their inputs.
            summed_rate: whether the next increment also depends on the summed rate so far.
            end_share: the share of each interval, at its end, whose observations are fitted. In long intervals a run
                that drops and settles is no line; with a small share the fit is to where intervals end.
            at: known coordinates of each task by name, such as {"a": {"rows": 5_000}}, beside the embedding. Tasks
                without traces may be among them (`with_task`).
            callback: called with the bound after each evaluation of the hyperparameters.
        """
        if mean == "law":
            from paceline.model.law import LawModel  # late: the law itself fits trace models, to compare tasks

            return LawModel.fit(traces, tasks=tasks)
        if mean != "constant":
            raise InputError(f'mean must be "constant" or "law", got {mean!r}: pick one of these')
        traces = check_traces(traces)
        if order not in (1, 2, 3):
            raise InputError(f"order must be 1, 2 or 3, got {order}: it is q of NARX(q)")
        segmenter = Segmenter.for_traces(traces, intervals, clock, order)
        segments = tuple(s for trace in traces for s in segmenter.split(trace))
        names = () if tasks is None else tuple(sorted({trace.task for trace in traces}))
        known = None if at is None else TaskCoordinates.of(at)
        settings = FitSettings(inducing, tasks or 0, lr, anchor_noise, random_effect, summed_rate, end_share, known)
        return cls._of(FitState.fit(segmenter, link_of(link), segments, names, settings, callback))

    @classmethod
    def _of(cls, state: FitState) -> "TraceModel":
        return cls(state, ConditionedProcess(state.posterior))

    def update(self, traces: Sequence[Trace], *, learn: bool = True) -> "TraceModel":
        """The model with further observations: new runs, or longer traces of the same name.

        The fit starts from this one. Runs are split and scaled as before, and the work on their statistics is
        proportional to the new observations. If the values outgrow their units, the model is fitted from the beginning.
        Draws that the model was conditioned on are dropped.

        Args:
            traces: the runs. A trace without a name is always new. They may bring new tasks.
            learn: False keeps the hyperparameters and only conditions on the runs.
        """
        traces = check_traces(traces)
        if traces[0].objective != self.encoder.segmenter.objective:
            raise InputError(
                f"update takes traces with the objective {self.encoder.segmenter.objective}, "
                f"got {traces[0].objective}: fit another model to these"
            )
        return self._of(self.state.update(traces, learn=learn))

    @property
    def encoder(self) -> TraceEncoder:
        """How runs become numbers."""
        return self.state.encoder

    @property
    def link(self) -> Link:
        """eta."""
        return self.state.link

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All intervals, including those that the model is not fitted to."""
        return self.state.segments

    @property
    def start_distribution(self) -> StartDistribution:
        """The distribution of the first values of runs."""
        return self.state.start_distribution

    @property
    def posterior(self) -> Posterior:
        """The posterior of the latent functions."""
        return self.process.posterior

    @property
    def bound(self) -> float:
        """Evidence lower bound of the fit, in scaled units."""
        return self.posterior.bound

    @property
    def noise(self) -> float:
        """Standard deviation of one observation, in the model's units (those of -loss, or of -log loss)."""
        return self.encoder.scaling.scale * float(self.state.noise_variance()) ** 0.5

    @property
    def task_embedding(self) -> dict[str, Float[np.ndarray, "dims"]]:
        """The location of each task, on principal axes; empty if all runs are of one task."""
        locations = on_principal_axes(self.posterior.hyper.embedding.numpy())
        return dict(zip(self.encoder.tasks, locations, strict=True))

    def task_distances(self, task: str, w: "Sequence[float] | np.ndarray | Tensor") -> Float[np.ndarray, "tasks"]:
        """How far each task is from a task at w with the coordinates of `task`, in lengthscales."""
        (coordinates,) = self.state.settings.coordinates_of([task])
        return distances(self.posterior.hyper, as_location(w), coordinates).numpy()

    def with_task(
        self, name: str, w: "Sequence[float] | np.ndarray | Tensor", at: "Mapping[str, float] | None" = None
    ) -> "TraceModel":
        """The model with one more task, which has no runs.

        Args:
            name: of the task.
            w: its location, on the axes of the fit.
            at: its coordinates, if the other tasks have some and `fit` was not given those of this one.
        """
        state = self.state.with_task(name, as_location(w), at)
        return TraceModel(state, replace(self.process, posterior=state.posterior))

    def with_hyperparameters(self, hyper: Hyperparameters, inputs: Float[Tensor, "n d"]) -> "TraceModel":
        """The model with other hyperparameters: the posterior of its rows is solved again, from where it is.

        Args:
            hyper: the hyperparameters.
            inputs: of the rows (`encoder.inputs` of the usable intervals).
        """
        old = self.posterior
        posterior = solve_posterior(inputs, self.state.likelihood, hyper, old.sites, old.inducing)
        return self._of(replace(self.state, posterior=posterior))

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
        """Forecast a run under a schedule.

        Args:
            schedule: the learning rate, from step 0 of the run.
            steps: the steps to forecast; by default the end of each interval still to come.
            start: the run so far; by default a new run, which starts like the fitted ones.
            task: the task of a new run, if the model has tasks.
            draws: how many traces to draw.
            noise: True to draw recorded values, False to draw the trace without observation noise.
            generator: source of randomness; a fresh one with seed 0 by default.
        """
        begin = self.start_distribution.step if start is None else start.last_step
        at = check_steps(self.encoder.future(schedule, begin).edges[1:] if steps is None else steps, begin)
        random = torch.Generator().manual_seed(0) if generator is None else generator
        future = self.encoder.future(schedule, begin, int(at[-1]))
        with few_threads():
            drawn = self._draw(future, start, task, draws, random, None)
        edges = future.edges
        interval = np.clip(np.searchsorted(edges, at, side="left") - 1, 0, len(edges) - 2)
        elapsed = tensor(self.encoder.elapsed(edges[interval], at))
        values = drawn.values[..., interval] + self.link(drawn.latents[..., interval], elapsed)
        if noise:
            error = torch.randn(values.shape, dtype=torch.float64, generator=random)
            number = self.encoder.task_number(task if start is None else start.task)
            values = values + self.state.noise_variance(number).sqrt() * error
        return Forecast(at, self.encoder.to_user(values.flatten(0, -2)))

    def draw(
        self,
        schedule: Schedule,
        *,
        start: Trace | None = None,
        task: str | None = None,
        draws: int = 1000,
        generator: torch.Generator | None = None,
        unit_lr: "Float[Tensor, 'intervals'] | None" = None,
        stop: int | None = None,
    ) -> Draw:
        """Exact joint draws of the values at the change points, in scaled units.

        `unit_lr` replaces the schedule's rates, in [0, 1] of the bounds, and may require a gradient: draws are
        differentiable in it, at fixed randomness. The other arguments are those of `forecast`.
        """
        begin = self.start_distribution.step if start is None else start.last_step
        random = torch.Generator().manual_seed(0) if generator is None else generator
        return self._draw(self.encoder.future(schedule, begin, stop), start, task, draws, random, unit_lr)

    def draw_batch(
        self,
        unit_lr: Float[Tensor, "intervals *each"],
        tasks: "Int[Tensor, '*each'] | None",
        normals: Normals,
        lengths: Float[Tensor, "intervals"],
        *,
        start: Trace | None = None,
    ) -> Draw:
        """Draws of runs under several schedules and of several tasks at once, in scaled units.

        Args:
            unit_lr: rates in [0, 1] of the bounds, broadcast over the draws; may require a gradient.
            tasks: numbers of the tasks, broadcast likewise; None if the model has none.
            normals: randomness. Its draws are the batch of the result, after the batch of a conditioned model.
            lengths: of the intervals, in mean intervals (`encoder.future`).
            start: the run so far, of the task in `tasks`; by default new runs.
        """
        return draw_path(
            self.run_state(tasks, normals, start),
            self.link,
            unit_lr=unit_lr,
            lengths=lengths,
            order=self.encoder.segmenter.order,
            task=tasks,
            normals=normals,
        )

    def run_state(
        self, tasks: "int | Int[Tensor, '*each'] | None", normals: Normals, start: Trace | None = None
    ) -> RunState:
        """The state of runs before their next interval, with the batch that `draw_batch` gives them."""
        return self.state.run_state(self.process, tasks, normals, start)

    def _draw(
        self,
        future: FutureIntervals,
        start: Trace | None,
        task: str | None,
        draws: int,
        random: torch.Generator,
        unit_lr: "Float[Tensor, 'intervals'] | None",
    ) -> Draw:
        count = len(future.lengths)
        check_draws(draws)
        if unit_lr is not None and unit_lr.shape != (count,):
            raise InputError(
                f"unit_lr needs one rate for each of the {count} intervals to come, got {tuple(unit_lr.shape)}: "
                "pass as many rates"
            )
        normals = Normals.draw(self.link.latents, draws, count, random)
        number = self.encoder.task_number(task if start is None else start.task)
        return draw_path(
            replace(self.run_state(number, normals, start), process=self.process.repeat(draws)),
            self.link,
            unit_lr=tensor(future.unit_lr) if unit_lr is None else unit_lr,
            lengths=tensor(future.lengths),
            order=self.encoder.segmenter.order,
            task=number,
            normals=normals,
        )

    def condition_on(self, draw: Draw) -> "TraceModel":
        """The model as if the drawn run had been made: its latent values are known, up to the random effect.

        A draw of many traces gives as many models at once. Their own draws then have that batch dimension first.
        """
        process = self.process
        for count in draw.inputs.shape[len(process.batch) : -2]:
            process = process.repeat(count)
        for k in range(draw.latents.shape[-1]):
            marginal = process.marginal(draw.inputs[..., k, :])
            process = marginal.condition_on(draw.latents[..., k], self.posterior.hyper.nugget)
        return replace(self, process=process)

    def with_median_outcome(self, rate: float, *, start: Trace, stop: int) -> "TraceModel":
        """The model as if a run had gone on at a rate, with the median of each latent function.

        Forecasts at this rate stay as they are and become more certain.

        Args:
            rate: the rate, or the multiplier if the model is of multipliers of a base.
            start: the run so far.
            stop: the step up to which it goes on.
        """
        elapsed = tensor(self.encoder.elapsed(start.last_step, stop)).reshape(1)
        x = tensor(self.encoder.scaling.lr_range.to_unit(np.array([rate])))
        task = self.encoder.task_number(start.task)
        normals = Normals.zeros(self.link.latents, 1)
        with torch.no_grad(), few_threads():
            number = None if task is None else torch.tensor(task)
            return self.condition_on(self.draw_batch(x, number, normals, elapsed, start=start))

    def quantile(
        self, alpha: float, rates: "Sequence[float] | np.ndarray", *, start: Trace, stop: int | None = None
    ) -> Float[np.ndarray, "*draws candidates"]:
        """The alpha-quantile of the trace at the end of the next interval, for each candidate rate, without sampling.

        Args:
            alpha: on the scale of improvement: 0.9 is optimistic for a loss and for an accuracy alike. The result (in
                the user's units) is exceeded with probability 1 - alpha, given the current level of the run. As in the
                paper, this level is taken as known; `forecast` includes its uncertainty.
            rates: candidate rates, or multipliers if the model is of multipliers of a base.
            start: the run so far.
            stop: the step at which the next interval ends; by default the next change point.
        """
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie in (0, 1), got {alpha}: 0.5 is the median")
        rates = np.asarray(rates, dtype=float)
        if rates.ndim != 1 or rates.size == 0 or not np.all(np.isfinite(rates) & (rates > 0)):
            raise InputError(
                f"rates must be a list of candidates in (0, inf), got {rates.tolist()}: pass positive numbers"
            )
        end = int(self.encoder.future(start.schedule, start.last_step).edges[1]) if stop is None else stop
        if end <= start.last_step:
            raise InputError(
                f"stop must come after step {start.last_step:,}, the run's last observation, got {end:,}: raise it"
            )
        self.encoder.check_base(start.schedule)
        task = self.encoder.task_number(start.task)
        values, older, rate_sum = self.state.recent_past(start, task, zeros(1))
        summed_rate = self.encoder.summed_rate
        x = tensor(self.encoder.scaling.lr_range.to_unit(rates))
        with few_threads():
            process = self.process.repeat(len(x))
            scaled_sum = None if summed_rate is None else summed_rate.unit(zeros() + rate_sum)
            z = latent_input(values, [x, *older], self.encoder.segmenter.order, task, scaled_sum)
            marginal = process.marginal(z.expand(*process.batch, z.shape[-1]))
            variance = marginal.variance + self.posterior.hyper.nugget.reshape(-1, *(1,) * len(process.batch))
            elapsed = tensor(self.encoder.elapsed(start.last_step, end))
            increment = increment_quantile(self.link, alpha, marginal.mean, variance, elapsed)
        return self.encoder.to_user(values[0] + increment)

    def latent_grid(
        self, values: Float[np.ndarray, "values"], x: Float[np.ndarray, "rates"], task: str | None = None
    ) -> tuple[Float[Tensor, "p values rates"], Float[Tensor, "p values rates"]]:
        """Mean and variance of the latent functions on a grid of values and rates, for pictures.

        A model of higher order is shown for runs whose value and rate have not changed lately.

        Args:
            values: scaled values Y.
            x: rates in [0, 1] of the bounds.
            task: name of the task, if the model has tasks.
        """
        grid = torch.meshgrid(tensor(values), tensor(x), indexing="ij")
        number = self.encoder.task_number(task)
        return self.posterior.marginal(latent_input([grid[0]], [grid[1]], self.encoder.segmenter.order, number))

    def fit_failures(self) -> FailureModel:
        """A failure model on (Y, x) of this model's intervals; `failure_inputs` makes its inputs.

        Intervals that begin with an absurd value are left out: their rates are not what made them fail.
        """
        sound = np.array([not segment.begins_diverged for segment in self.segments])
        inputs = self.encoder.inputs(self.segments).numpy()[:, [0, self.encoder.segmenter.order]]
        return FailureModel.fit(inputs[sound], self.failed()[sound], inducing=self.state.settings.inducing)

    def failure_inputs(self, value: float, rates: Float[np.ndarray, "candidates"]) -> Float[np.ndarray, "candidates 2"]:
        """Rows (Y, x) for a current value in the user's units and candidate rates."""
        scaled = self.encoder.scaling.to_scaled(self.encoder.segmenter.objective.to_model(np.array([float(value)])))
        return np.stack([np.full(len(rates), scaled[0]), self.encoder.scaling.lr_range.to_unit(rates)], -1)

    def failed(self) -> Bool[np.ndarray, "rows"]:
        """Which of `segments` failed, given this model's noise."""
        return failed_intervals(self.segments, self.noise)
