"""The trace model: latent Gaussian processes that say how far a run moves from where it is, at which rate.

y(t) = Y_k + eta(f(Y_k, .., Y_{k-q+1}, x_k, .., x_{k-q+1}), t - T_k) + e(t)   for T_k <= t < T_{k+1}

(paper, section 2). This class calls the parts in turn and answers in the user's units: `frame` reads runs, `likelihood`
and `posterior` fit, `paths` and `quantiles` predict.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.current_level import current_level
from paceline.model.encoder import FutureIntervals, Intervals, StartDistribution, TraceEncoder, segmenter_for
from paceline.model.failure import FailureModel, failed_intervals
from paceline.model.forecast import Forecast, steps_ahead
from paceline.model.kernels import Hyperparameters
from paceline.model.likelihood import TraceLikelihood
from paceline.model.linalg import few_threads, tensor, zeros
from paceline.model.links import Link, link_of
from paceline.model.paths import ConditionedProcess, Draw, Normals, RunState, draw_path, latent_input
from paceline.model.posterior import Posterior, Sites, farthest_points, fit_posterior
from paceline.model.preprocess import FitSettings, check_traces, trace_likelihood, usable_segments
from paceline.model.quantiles import increment_quantile
from paceline.model.summed_rate import SummedRate
from paceline.model.task_embedding import location, on_principal_axes, placed, with_location
from paceline.traces import ClockName, LearningRateRange, Scaling, Schedule, Segment, Segmenter, Trace

if TYPE_CHECKING:
    from paceline.model.law import LawModel

MANY = 1_000  # intervals above which hyperparameters are first learnt from a part of them


@dataclass(frozen=True, slots=True, eq=False)
class TraceModel:
    """A fitted model of traces; `fit` makes one, `update` adds to it, `condition_on` looks ahead.

    >>> steps = np.arange(0, 101, 10)
    >>> traces = [Trace(steps, 3 * np.exp(-lr * steps), Schedule.constant(lr, 100)) for lr in (0.003, 0.03)]
    >>> model = TraceModel.fit(traces, intervals=5)
    >>> forecast = model.forecast(Schedule.constant(0.01, 100), steps=[50, 100])
    >>> bool(forecast.quantile(0.1)[1] < forecast.mean[1] < forecast.quantile(0.9)[1])
    True
    """

    encoder: TraceEncoder
    link: Link
    settings: "FitSettings"
    segments: tuple[Segment, ...]
    likelihood: TraceLikelihood
    process: ConditionedProcess
    start_distribution: StartDistribution
    centre: Float[Tensor, "p"]

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
        watch: "Callable[[float], None] | None" = None,
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
        watch: "Callable[[float], None] | None" = None,
    ) -> "TraceModel | LawModel":
        """Fit the model to traces of one objective.

        Args:
            traces: recorded runs; a fork counts only what it observed itself, so pass its parent too.
            mean: "constant" fits the paper's model of the next interval and returns a `TraceModel`. "law" is short for
                `LawModel.fit(traces, tasks=tasks)`: it returns a `LawModel`, which forecasts and plans whole runs and
                takes no setting but `tasks`.
            intervals: how many equal intervals, or the change points themselves; by default each run is cut where its
                own schedule changes, and into twenty equal intervals where it does not.
            clock: "step", or "log" for a clock that starts at 1 % of the run.
            link: "linear", "exponential", "power", "hyperbolic", or a `Link`; "signed" or "relaxing" for traces that
                get worse where the rate rises.
            order: q, how many past intervals the next increment depends on: 1, 2 or 3.
            inducing: most inducing points; all intervals are, as long as there are no more than this.
            tasks: dimensions of the task embedding; None treats all traces as one task, 0 shares nothing.
            lr: bounds of the rate that scale x; by default those observed.
            anchor_noise: marginalise the error of each interval's first value.
            random_effect: let intervals differ from each other beyond their inputs.
            summed_rate: let the next increment depend on the summed rate so far, too.
            watch: called with the bound after each evaluation of the hyperparameters.
        """
        if mean == "law":
            from paceline.model.law import LawModel  # it fits trace models itself, to learn how alike tasks are

            return LawModel.fit(traces, tasks=tasks)
        if mean != "constant":
            raise InputError(f'mean must be "constant" or "law", got {mean!r}')
        traces = check_traces(traces)
        if order not in (1, 2, 3):
            raise InputError(f"order must be 1, 2 or 3, got {order}: it is q of NARX(q)")
        segmenter = segmenter_for(traces, intervals, clock, order)
        segments = tuple(s for trace in traces for s in segmenter.split(trace))
        names = () if tasks is None else tuple(sorted({trace.task for trace in traces}))
        settings = FitSettings(inducing, tasks or 0, lr, anchor_noise, random_effect, summed_rate)
        return cls._cold(segmenter, link_of(link), segments, names, settings, watch)

    @classmethod
    def _cold(
        cls,
        segmenter: Segmenter,
        link: Link,
        segments: tuple[Segment, ...],
        tasks: tuple[str, ...],
        settings: "FitSettings",
        watch: "Callable[[float], None] | None" = None,
    ) -> "TraceModel":
        """Fit from nothing: units, then least squares per interval, then the engine."""
        used = usable_segments(segments, link)
        if not used:
            raise InputError(
                "expected at least one interval with two observations that did not fail, "
                f"got {len(segments)} interval(s), {sum(s.failed for s in segments)} of them failed: "
                "record values more often, or pass runs that did not fail"
            )
        scaling = Scaling.of(used, settings.lr)
        encoder = TraceEncoder(
            segmenter, scaling, tasks, SummedRate.of(segmenter, scaling) if settings.summed_rate else None
        )
        likelihood = trace_likelihood(used, link, encoder, settings)
        guess = likelihood.least_squares()
        centre = guess.median(1).values
        columns = 2 * segmenter.order + settings.summed_rate
        hyper = Hyperparameters.start(
            centre, columns, nugget=settings.random_effect, tasks=len(tasks), dims=settings.task_dims
        )
        inputs, sites, most = encoder.inputs(used), Sites.near(likelihood, guess), 60
        inducing = farthest_points(inputs, settings.inducing)
        if len(used) > MANY:
            # hyperparameters are learnt well from some of very many intervals; a few steps on all of them finish
            some = torch.linspace(0, len(used) - 1, MANY // 2).long()
            part = farthest_points(inputs[some], settings.inducing)
            rough = fit_posterior(
                inputs[some], likelihood.rows(some), hyper, sites.rows(some), inducing=part, centre=centre
            )
            hyper, most = rough.hyper, 2
        posterior = fit_posterior(
            inputs, likelihood, hyper, sites, inducing=inducing, centre=centre, most=most, watch=watch
        )
        process, law = ConditionedProcess(posterior), encoder.start_distribution(segments)
        return cls(encoder, link, settings, segments, likelihood, process, law, centre)

    def update(self, traces: Sequence[Trace], *, learn: bool = True) -> "TraceModel":
        """The model with further observations: new traces, or longer ones of the same name. Starts warm.

        Traces without a name are always new, and so may their tasks be. A model conditioned on draws forgets them.
        `learn=False` keeps the hyperparameters: the model is then conditioned on the runs, no more.
        Cut and linked as in the first fit; work on the statistics is proportional to what is new. Where values have
        outgrown the units they are scaled by, a model that learns is fitted anew.
        """
        traces = check_traces(traces)
        if traces[0].objective != self.encoder.segmenter.objective:
            raise InputError("update takes traces of the objective the model was fitted to: fit another model to these")
        for trace in traces:
            self.encoder.check_base(trace.schedule)
        encoder = self.encoder.with_tasks([trace.task for trace in traces])
        latest = {s.trace: s for s in self.segments if s.trace}
        fresh = [s for trace in traces for s in self.encoder.segmenter.split(trace, latest.get(trace.name))]
        grown = {id(latest[s.trace]) for s in fresh if s.trace in latest and latest[s.trace].start == s.start}
        segments = (*(s for s in self.segments if id(s) not in grown), *fresh)
        new = usable_segments(fresh, self.link)
        if learn and encoder.scaling.is_outgrown_by(new):
            return self._cold(encoder.segmenter, self.link, segments, encoder.tasks, self.settings)
        if not usable_segments(segments, self.link):
            raise InputError("every interval has failed: pass runs that did not fail")
        used, sites = usable_segments(self.segments, self.link), self.posterior.sites
        kept = torch.tensor([i for i, s in enumerate(used) if id(s) not in grown], dtype=torch.long)
        likelihood, sites = self.likelihood.rows(kept), sites.rows(kept)
        if new:
            added = trace_likelihood(new, self.link, encoder, self.settings)
            likelihood, sites = likelihood.concat(added), sites.concat(Sites.near(added, added.least_squares()))
        inputs = encoder.inputs(usable_segments(segments, self.link))
        inducing = farthest_points(inputs, self.settings.inducing)
        hyper, extra = self.posterior.hyper, len(encoder.tasks) - len(self.encoder.tasks)
        with few_threads():
            if extra:
                hyper = placed(
                    hyper,
                    extra,
                    inputs=inputs,
                    likelihood=likelihood,
                    sites=sites,
                    inducing=inducing,
                    centre=self.centre,
                )
        steps = 0 if not learn else 20 if extra else 3
        posterior = fit_posterior(inputs, likelihood, hyper, sites, inducing=inducing, centre=self.centre, most=steps)
        return replace(
            self,
            encoder=encoder,
            segments=segments,
            likelihood=likelihood,
            process=ConditionedProcess(posterior),
            start_distribution=encoder.start_distribution(segments),
        )

    @property
    def posterior(self) -> Posterior:
        """Beliefs about the latent functions."""
        return self.process.posterior

    @property
    def bound(self) -> float:
        """Evidence lower bound of the fit, in scaled units."""
        return self.posterior.bound

    @property
    def noise(self) -> float:
        """Standard deviation of one observation, in the model's units (those of -loss, or of -log loss)."""
        return self.encoder.scaling.scale * float(self._noise_variance()) ** 0.5

    @property
    def task_embedding(self) -> dict[str, Float[np.ndarray, "dims"]]:
        """The location of each task, on principal axes; empty if all runs are of one task."""
        places = on_principal_axes(self.posterior.hyper.embedding.numpy())
        return dict(zip(self.encoder.tasks, places, strict=True))

    def with_task(self, name: str, w: "Sequence[float] | np.ndarray | Tensor") -> "TraceModel":
        """The model with one more task, of which nothing is known but its location w, on the fit's own axes."""
        if not self.encoder.tasks or name in self.encoder.tasks:
            raise InputError(
                f"with_task adds a task to those fitted, {list(self.encoder.tasks)}, got {name!r}: "
                "fit with tasks=2, and take another name"
            )
        encoder = self.encoder.with_tasks([name])
        posterior = replace(self.posterior, hyper=with_location(self.posterior.hyper, location(w)))
        start = self.start_distribution
        start = replace(start, tasks=(*start.tasks, (start.mean, start.deviation)))
        groups = self.likelihood.groups + (self.settings.task_dims == 0)
        likelihood = replace(self.likelihood, groups=groups)
        process = replace(self.process, posterior=posterior)
        return replace(self, encoder=encoder, likelihood=likelihood, process=process, start_distribution=start)

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
            steps: where to forecast; by default at the end of each interval still to come.
            start: the run so far; by default a new run, which starts as the fitted ones did.
            task: the task of a new run, where the model has tasks.
            draws: how many traces to draw.
            noise: whether the draws are of values to be recorded, or of the trace behind them.
            generator: source of randomness; a fresh one with seed 0 by default.
        """
        begin = self.start_distribution.step if start is None else start.last_step
        at = steps_ahead(self.encoder.future(schedule, begin).edges[1:] if steps is None else steps, begin)
        random = torch.Generator().manual_seed(0) if generator is None else generator
        ahead = self.encoder.future(schedule, begin, int(at[-1]))
        with few_threads():
            drawn = self._drawn(ahead, start, task, draws, random, None)
        edges = ahead.edges
        interval = np.clip(np.searchsorted(edges, at, side="left") - 1, 0, len(edges) - 2)
        elapsed = tensor(self.encoder.elapsed(edges[interval], at))
        values = drawn.values[..., interval] + self.link(drawn.latents[..., interval], elapsed)
        if noise:
            error = torch.randn(values.shape, dtype=torch.float64, generator=random)
            number = self.encoder.task_number(task if start is None else start.task)
            values = values + self._noise_variance(number).sqrt() * error
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
        ahead = self.encoder.future(schedule, self.start_distribution.step if start is None else start.last_step, stop)
        random = torch.Generator().manual_seed(0) if generator is None else generator
        return self._drawn(ahead, start, task, draws, random, unit_lr)

    def draw_new(
        self,
        unit_lr: Float[Tensor, "intervals *each"],
        tasks: "Int[Tensor, '*each'] | None",
        normals: Normals,
        lengths: Float[Tensor, "intervals"],
        *,
        start: Trace | None = None,
    ) -> Draw:
        """Draws of runs under several schedules and of several tasks at once, in scaled units: for strategies.

        Args:
            unit_lr: rates in [0, 1] of the bounds, broadcast over the draws; may require a gradient.
            tasks: numbers of the tasks, broadcast likewise; None where the model has none.
            normals: randomness; their draws are the batch of the result, which begins with that of a conditioned model.
            lengths: of the intervals, in mean intervals (`frame.ahead`).
            start: the run so far, of which `tasks` is the task; by default new runs.
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
        """Runs where they stand, new ones before their first interval, with the batch that `draw_new` gives them."""
        process = self.process
        for count in normals.start.shape[len(process.batch) :]:
            process = process.repeat(count)
        if start is not None:
            number = self.encoder.task_number(start.task)
            values, rates, rate_sum = self._behind(start, number, normals.start)
            return RunState(process, tuple(values), tuple(rates), zeros() + rate_sum, self.encoder.summed_rate)
        numbers = range(len(self.encoder.tasks)) if self.encoder.tasks else [None]
        law = tensor(np.array([self.start_distribution.of(m) for m in numbers]))
        mean, deviation = (law[0] if tasks is None else law[tasks]).unbind(-1)
        return RunState(process, (mean + deviation * normals.start,), summed_rate=self.encoder.summed_rate)

    def _drawn(
        self,
        ahead: FutureIntervals,
        start: Trace | None,
        task: str | None,
        draws: int,
        random: torch.Generator,
        unit_lr: "Float[Tensor, 'intervals'] | None",
    ) -> Draw:
        count = len(ahead.lengths)
        if draws < 1:
            raise InputError(f"draws must be at least 1, got {draws}: 1000 give steady quantiles")
        if unit_lr is not None and unit_lr.shape != (count,):
            raise InputError(
                f"unit_lr needs one rate for each of {count} intervals to come, got {tuple(unit_lr.shape)}"
            )
        normals = Normals.of(self.link.latents, draws, count, random)
        number = self.encoder.task_number(task if start is None else start.task)
        return draw_path(
            replace(self.run_state(number, normals, start), process=self.process.repeat(draws)),
            self.link,
            unit_lr=tensor(ahead.unit_lr) if unit_lr is None else unit_lr,
            lengths=tensor(ahead.lengths),
            order=self.encoder.segmenter.order,
            task=number,
            normals=normals,
        )

    def _behind(
        self, start: Trace, task: int | None, normals: Float[Tensor, "*draws"]
    ) -> tuple[list[Tensor], list[Tensor], float]:
        """Values and rates of the intervals behind, newest first, and S."""
        past = self.encoder.past(start)
        level = current_level(self.encoder, self.link, self.posterior, past, self._noise_variance(task), normals)
        return [level, *tensor(past.values[1:])], list(tensor(past.unit_lr)), past.rate_sum

    def condition_on(self, draw: Draw) -> "TraceModel":
        """The model as if the drawn run had been made: its latent values known, up to the random effect.

        A draw of many traces gives as many models at once; their own draws then have that batch dimension first.
        """
        process = self.process
        for count in draw.inputs.shape[len(process.batch) : -2]:
            process = process.repeat(count)
        for k in range(draw.latents.shape[-1]):
            process = process.marginal(draw.inputs[..., k, :]).condition_on(
                draw.latents[..., k], self.posterior.hyper.nugget
            )
        return replace(self, process=process)

    def quantile(
        self, alpha: float, rates: "Sequence[float] | np.ndarray", *, start: Trace, stop: int | None = None
    ) -> Float[np.ndarray, "*draws candidates"]:
        """The alpha-quantile of the trace at the end of the next interval, for each candidate rate, without sampling.

        Args:
            alpha: on the scale of improvement: 0.9 is an optimistic view whatever the objective's mode. The value
                that comes back (in the user's units) is bettered with probability 1 - alpha, given where the run
                stands now: as in the paper, its level is taken as known. `forecast` spreads that too.
            rates: candidate rates, or multipliers where the model is of multipliers of a base.
            start: the run so far.
            stop: the step at which the next interval ends; by default the next change point.
        """
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie in (0, 1), got {alpha}")
        rates = np.asarray(rates, dtype=float)
        if rates.ndim != 1 or rates.size == 0 or not np.all(np.isfinite(rates) & (rates > 0)):
            raise InputError(f"rates must be a list of candidates in (0, inf), got {rates.tolist()}")
        end = int(self.encoder.future(start.schedule, start.last_step).edges[1]) if stop is None else stop
        if end <= start.last_step:
            raise InputError(f"stop must lie after step {start.last_step:,}, the current step of the run, got {end:,}")
        self.encoder.check_base(start.schedule)
        task = self.encoder.task_number(start.task)
        values, older, rate_sum = self._behind(start, task, zeros(1))
        summed_rate = self.encoder.summed_rate
        x = tensor(self.encoder.scaling.lr_range.to_unit(rates))
        with few_threads():
            process = self.process.repeat(len(x))
            far = None if summed_rate is None else summed_rate.unit(zeros() + rate_sum)
            z = latent_input(values, [x, *older], self.encoder.segmenter.order, task, far)
            look = process.marginal(z.expand(*process.batch, z.shape[-1]))
            spread = look.variance + self.posterior.hyper.nugget.reshape(-1, *(1,) * len(process.batch))
            elapsed = tensor(self.encoder.elapsed(start.last_step, end))
            gain = increment_quantile(self.link, alpha, look.mean, spread, elapsed)
        return self.encoder.to_user(values[0] + gain)

    def fit_failures(self) -> FailureModel:
        """The failure classifier on (Y, x) of this model's intervals; ask it with `failure_inputs`."""
        inputs = self.encoder.inputs(self.segments).numpy()[:, [0, self.encoder.segmenter.order]]
        return FailureModel.fit(inputs, self.failed(), inducing=self.settings.inducing)

    def failure_inputs(self, value: float, rates: Float[np.ndarray, "candidates"]) -> Float[np.ndarray, "candidates 2"]:
        """Rows (Y, x) for a current value in the user's units and candidate rates."""
        scaled = self.encoder.scaling.to_scaled(self.encoder.segmenter.objective.to_model(np.array([float(value)])))
        return np.stack([np.full(len(rates), scaled[0]), self.encoder.scaling.lr_range.to_unit(rates)], -1)

    def failed(self) -> Bool[np.ndarray, "rows"]:
        """Which of `segments` count as failed under this model's noise."""
        return failed_intervals(self.segments, self.noise)

    def _noise_variance(self, task: int | None = None) -> Float[Tensor, ""]:
        """Of one observation, scaled; of a task where tasks share nothing."""
        likelihood, mean, variance = self.likelihood, self.posterior.row_mean, self.posterior.row_variance
        if task is None or likelihood.groups == 1:
            return likelihood.noise(mean, variance)
        return likelihood.noises(mean, variance)[task]
