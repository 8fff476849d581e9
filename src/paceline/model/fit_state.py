"""Fitting a trace model: a first fit, an update, a new task.

A `FitState` holds everything that a fit leaves behind: how runs are encoded, the intervals, their likelihood, and the
posterior. `fit`, `update` and `with_task` return a new one. `run_state` is where draws start.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.current_level import current_level
from paceline.model.encoder import TraceEncoder
from paceline.model.kernels import Hyperparameters
from paceline.model.likelihood import TraceLikelihood
from paceline.model.linalg import few_threads, tensor, zeros
from paceline.model.links import Link
from paceline.model.normals import Normals
from paceline.model.paths import RunState
from paceline.model.posterior import Posterior, farthest_points, fit_posterior
from paceline.model.preprocess import trace_likelihood, usable_segments
from paceline.model.process import ConditionedProcess
from paceline.model.settings import INFERENCE, FitSettings
from paceline.model.sites import Sites
from paceline.model.start_distribution import StartDistribution
from paceline.model.summed_rate import SummedRate
from paceline.model.task_embedding import place_tasks, with_location
from paceline.traces import Scaling, Segment, Segmenter, Trace


@dataclass(frozen=True, slots=True, eq=False)
class FitState:
    """Everything that a fit leaves behind.

    Args:
        encoder: how runs become numbers.
        link: eta.
        settings: the arguments of the fit.
        segments: all intervals, including those that are not fitted to.
        likelihood: of the usable intervals.
        posterior: of the latent functions.
        start_distribution: of the first values of runs.
        centre: prior mean of the constant mean.
    """

    encoder: TraceEncoder
    link: Link
    settings: FitSettings
    segments: tuple[Segment, ...]
    likelihood: TraceLikelihood
    posterior: Posterior
    start_distribution: StartDistribution
    centre: Float[Tensor, "p"]

    @classmethod
    def fit(
        cls,
        segmenter: Segmenter,
        link: Link,
        segments: tuple[Segment, ...],
        tasks: tuple[str, ...],
        settings: FitSettings,
        callback: "Callable[[float], None] | None" = None,
    ) -> "FitState":
        """A first fit: units, then least squares per interval, then the engine."""
        used = usable_segments(segments, link)
        if not used:
            raise InputError(
                "expected at least one interval with two observations that did not fail, "
                f"got {len(segments)} interval(s), {sum(s.failed for s in segments)} of them failed: "
                "record values more often, or pass better runs"
            )
        scaling = Scaling.of(used, settings.lr)
        summed_rate = SummedRate.of(segmenter, scaling) if settings.summed_rate else None
        encoder = TraceEncoder(segmenter, scaling, tasks, summed_rate)
        likelihood = trace_likelihood(used, link, encoder, settings)
        guess = likelihood.least_squares()
        centre = guess.median(1).values
        columns = 2 * segmenter.order + settings.summed_rate
        hyper = Hyperparameters.start(
            centre,
            columns,
            nugget=settings.random_effect,
            tasks=len(tasks),
            dims=settings.task_dims,
            coordinates=settings.coordinates_of(tasks),
        )
        inputs, sites, iterations = encoder.inputs(used), Sites.near(likelihood, guess), INFERENCE.iterations
        inducing = farthest_points(inputs, settings.inducing)
        if len(used) > INFERENCE.many_intervals:
            hyper = _fit_to_some(inputs, likelihood, hyper, sites, settings.inducing, centre)
            iterations = INFERENCE.final_iterations
        posterior = fit_posterior(
            inputs,
            likelihood,
            hyper,
            sites,
            inducing=inducing,
            centre=centre,
            iterations=iterations,
            callback=callback,
        )
        start = StartDistribution.of(segments, scaling, segmenter.clock, tasks)
        return cls(encoder, link, settings, segments, likelihood, posterior, start, centre)

    def update(self, traces: Sequence[Trace], *, learn: bool = True) -> "FitState":
        """The fit with further observations; see `TraceModel.update`."""
        for trace in traces:
            self.encoder.check_base(trace.schedule)
        encoder = self.encoder.with_tasks([trace.task for trace in traces])
        latest = {s.trace: s for s in self.segments if s.trace}
        fresh = [s for trace in traces for s in self.encoder.segmenter.split(trace, latest.get(trace.name))]
        replaced = {id(latest[s.trace]) for s in fresh if s.trace in latest and latest[s.trace].start == s.start}
        segments = (*(s for s in self.segments if id(s) not in replaced), *fresh)
        new = usable_segments(fresh, self.link)
        if learn and encoder.scaling.is_outgrown_by(new):
            return FitState.fit(encoder.segmenter, self.link, segments, encoder.tasks, self.settings)
        used = usable_segments(segments, self.link)
        if not used:
            raise InputError("every interval has failed: pass runs that did not fail, a model needs at least one")
        old = usable_segments(self.segments, self.link)
        rows = torch.tensor([i for i, s in enumerate(old) if id(s) not in replaced], dtype=torch.long)
        likelihood, sites = self.likelihood.rows(rows), self.posterior.sites.rows(rows)
        if new:
            added = trace_likelihood(new, self.link, encoder, self.settings)
            likelihood, sites = likelihood.concat(added), sites.concat(Sites.near(added, added.least_squares()))
        inputs = encoder.inputs(used)
        inducing = farthest_points(inputs, self.settings.inducing)
        hyper, new_tasks = self.posterior.hyper, encoder.tasks[len(self.encoder.tasks) :]
        if new_tasks:
            with few_threads():
                hyper = place_tasks(
                    hyper,
                    self.settings.coordinates_of(new_tasks),
                    inputs=inputs,
                    likelihood=likelihood,
                    sites=sites,
                    inducing=inducing,
                    centre=self.centre,
                )
        iterations = INFERENCE.new_task_iterations if new_tasks else INFERENCE.update_iterations
        posterior = fit_posterior(
            inputs,
            likelihood,
            hyper,
            sites,
            inducing=inducing,
            centre=self.centre,
            iterations=iterations if learn else 0,
        )
        start = StartDistribution.of(segments, encoder.scaling, encoder.segmenter.clock, encoder.tasks)
        return replace(
            self,
            encoder=encoder,
            segments=segments,
            likelihood=likelihood,
            posterior=posterior,
            start_distribution=start,
        )

    def with_task(self, name: str, w: Float[Tensor, "dims"], at: "Mapping[str, float] | None" = None) -> "FitState":
        """The fit with one more task at w, which has no runs; `at` are its coordinates if the fit has not got them."""
        if not self.encoder.tasks or name in self.encoder.tasks:
            raise InputError(
                f"with_task adds a task to those fitted, {list(self.encoder.tasks)}, got {name!r}: "
                "fit with tasks=2, and pass a new name"
            )
        settings, start = self.settings.with_coordinates(name, at), self.start_distribution
        (coordinates,) = settings.coordinates_of([name])
        groups = self.likelihood.groups + (self.settings.task_dims == 0)
        return replace(
            self,
            encoder=self.encoder.with_tasks([name]),
            settings=settings,
            likelihood=replace(self.likelihood, groups=groups),
            posterior=replace(self.posterior, hyper=with_location(self.posterior.hyper, w, coordinates)),
            start_distribution=replace(start, tasks=(*start.tasks, (start.mean, start.deviation))),
        )

    def noise_variance(self, task: int | None = None) -> Float[Tensor, ""]:
        """Of one observation, scaled; of a task, if tasks share nothing."""
        likelihood, mean, variance = self.likelihood, self.posterior.row_mean, self.posterior.row_variance
        if task is None or likelihood.groups == 1:
            return likelihood.noise(mean, variance)
        return likelihood.noises(mean, variance)[task]

    def recent_past(
        self, start: Trace, task: int | None, normals: Float[Tensor, "*draws"]
    ) -> tuple[list[Tensor], list[Tensor], float]:
        """Values and rates of a run's last intervals, newest first, and S."""
        past = self.encoder.past(start)
        if past.last is not None:
            past = replace(past, last=past.last.ending(self.settings.end_share))
        if self.settings.anchor_noise:
            level = current_level(self.encoder, self.link, self.posterior, past, self.noise_variance(task), normals)
        else:  # the last value is exact, as in the paper
            level = torch.full_like(normals, float(past.values[0]))
        return [level, *tensor(past.values[1:])], list(tensor(past.unit_lr)), past.rate_sum

    def run_state(
        self,
        process: ConditionedProcess,
        tasks: "int | Int[Tensor, '*each'] | None",
        normals: Normals,
        start: Trace | None = None,
    ) -> RunState:
        """The state of runs before their next interval; see `TraceModel.run_state`."""
        for count in normals.start.shape[len(process.batch) :]:
            process = process.repeat(count)
        if start is not None:
            number = self.encoder.task_number(start.task)
            values, rates, rate_sum = self.recent_past(start, number, normals.start)
            return RunState(process, tuple(values), tuple(rates), zeros() + rate_sum, self.encoder.summed_rate)
        numbers = range(len(self.encoder.tasks)) if self.encoder.tasks else [None]
        moments = tensor(np.array([self.start_distribution.for_task(m) for m in numbers]))
        mean, deviation = (moments[0] if tasks is None else moments[tasks]).unbind(-1)
        return RunState(process, (mean + deviation * normals.start,), summed_rate=self.encoder.summed_rate)


def _fit_to_some(
    inputs: Float[Tensor, "n d"],
    likelihood: TraceLikelihood,
    hyper: Hyperparameters,
    sites: Sites,
    inducing: int,
    centre: Float[Tensor, "p"],
) -> Hyperparameters:
    """Hyperparameters fitted to some of very many intervals; a few steps on all of them are then enough."""
    some = torch.linspace(0, len(inputs) - 1, INFERENCE.many_intervals // 2).long()
    part = farthest_points(inputs[some], inducing)
    rough = fit_posterior(inputs[some], likelihood.rows(some), hyper, sites.rows(some), inducing=part, centre=centre)
    return rough.hyper
