"""Where a new task lies among those known: a distribution of w_new, before its first run and along it.

p(w | runs) is proportional to p(w) p(runs | w): a measure on w (paper, section 4.4) times what the model, with its
hyperparameters and the known tasks where they are, says of the new task's runs if it lay at w. The second factor is the
bound of the fit with the task moved there. The distribution is held as locations with weights: some drawn from the
measure, then more from a Gaussian around the best so far, all weighted by p(w) p(runs | w) over the density they came
from.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial, log, pi
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.linalg import eye, few_threads, lower_solve, tensor, try_cholesky, zeros
from paceline.model.paths import ConditionedProcess
from paceline.model.posterior import solved_posterior
from paceline.model.preprocess import usable_segments
from paceline.model.trace_model import TraceModel
from paceline.traces import Trace

NEAREST = 0.1  # no two tasks are taken to be closer than this, in lengthscales of the kernel


class Measure(ABC):
    """Where new tasks may lie, given where the known ones do."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """Locations at random."""

    @abstractmethod
    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """Of a place, with its constant: locations drawn from several measures are weighed by all of them."""


@dataclass(frozen=True, eq=False)
class Gaussian(Measure):
    """N(mean, L L')."""

    mean: Float[Tensor, "dims"]
    chol: Float[Tensor, "dims dims"]

    @classmethod
    def around(cls, locations: Float[Tensor, "n dims"]) -> "Gaussian":
        """One more like these: their mean and covariance, as wide as so few locations ask for."""
        count, dims = locations.shape
        mean = locations.mean(0)
        scatter = (locations - mean).mT @ (locations - mean) / max(count - 1, 1)
        covariance = (1 + 1 / count) * scatter + NEAREST**2 * eye(dims)
        return cls.of(mean, covariance)

    @classmethod
    def of(cls, mean: Float[Tensor, "dims"], covariance: Float[Tensor, "dims dims"]) -> "Gaussian":
        """From its moments."""
        chol = try_cholesky(covariance)
        assert chol is not None, "covariances come with something on their diagonal"
        return cls(mean, chol)

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """Locations at random."""
        return self.mean + torch.randn(count, len(self.mean), dtype=torch.float64, generator=generator) @ self.chol.mT

    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """log N(w; mean, L L')."""
        e = lower_solve(self.chol, (w - self.mean).mT)
        constant = torch.log(torch.diagonal(self.chol)).sum() + 0.5 * len(self.mean) * log(2 * pi)
        return -0.5 * e.square().sum(0) - constant


@dataclass(frozen=True, eq=False)
class Hull(Measure):
    """Uniform over the convex hull of the known tasks, as in the paper."""

    corners: Float[Tensor, "n dims"]

    def __post_init__(self) -> None:
        count, dims = self.corners.shape
        flat = count <= dims or np.linalg.matrix_rank((self.corners - self.corners.mean(0)).numpy(), tol=1e-6) < dims
        if flat:
            raise InputError(
                f"the convex hull of {count} tasks has no volume in {dims} dimensions: "
                'use prior="gaussian", or a family of more tasks'
            )

    @cached_property
    def triangles(self) -> Any:
        """The hull cut into simplices; scipy's begin with two dimensions."""
        from scipy.spatial import Delaunay

        return Delaunay(self.corners.numpy())

    @cached_property
    def simplices(self) -> Float[Tensor, "simplices corners dims"]:
        """Their corners."""
        if self.corners.shape[1] == 1:
            return torch.stack([self.corners.min(0).values, self.corners.max(0).values])[None]
        return self.corners[torch.as_tensor(self.triangles.simplices).long()]

    @cached_property
    def volumes(self) -> Float[Tensor, "simplices"]:
        """Of the simplices."""
        edges = self.simplices[:, 1:] - self.simplices[:, :1]
        return torch.det(edges).abs() / factorial(self.corners.shape[1])  # pyright: ignore

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """A simplex by its volume, a place in it by Dirichlet weights of its corners."""
        chosen = torch.multinomial(self.volumes, count, replacement=True, generator=generator)
        gaps = -torch.log(torch.rand(count, self.simplices.shape[1], dtype=torch.float64, generator=generator))
        return ((gaps / gaps.sum(1, keepdim=True))[..., None] * self.simplices[chosen]).sum(1)

    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """The same everywhere inside, -inf outside."""
        if self.corners.shape[1] == 1:
            inside = ((w >= self.corners.min()) & (w <= self.corners.max()))[:, 0]
        else:
            found: Bool[np.ndarray, "n"] = self.triangles.find_simplex(w.numpy()) >= 0
            inside = torch.as_tensor(found)
        return torch.where(inside, -torch.log(self.volumes.sum()), -torch.inf).double()


MEASURES: dict[str, Any] = {"gaussian": Gaussian.around, "hull": Hull}


def measure_of(name: str, model: TraceModel) -> Measure:
    """The measure of this name over the model's tasks."""
    if name not in MEASURES:
        raise InputError(f"measure must be one of {list(MEASURES)}, got {name!r}")
    embedding = model.posterior.hyper.embedding
    if embedding.numel() == 0:
        raise InputError(
            f"a new task needs tasks that share something, got {len(embedding)} in {embedding.shape[1]} dimensions: "
            "make the family with dims=2"
        )
    return MEASURES[name](embedding)


@dataclass(frozen=True, slots=True, eq=False)
class TaskPosterior:
    """What is known about w_new: locations, their weights, and the model with the task at each of them.

    Args:
        task: its name.
        locations: w.
        weights: of the locations; they sum to one.
        log_density: log p(w) p(runs | w) at each, up to a constant.
        models: one per place, conditioned on the task's runs so far.
    """

    task: str
    locations: Float[Tensor, "n dims"]
    weights: Float[Tensor, "n"]
    log_density: Float[Tensor, "n"]
    models: tuple[TraceModel, ...]

    @classmethod
    def from_prior(
        cls, model: TraceModel, task: str, measure: Measure, count: int, generator: torch.Generator
    ) -> "TaskPosterior":
        """What is known before the first run: the measure itself."""
        locations = measure.draw(count, generator)
        models = tuple(model.with_task(task, w) for w in locations)
        weights = torch.full((count,), 1 / count, dtype=torch.float64)
        return cls(task, locations, weights, measure.log_density(locations), models)

    @classmethod
    def from_runs(
        cls,
        model: TraceModel,
        task: str,
        runs: Sequence[Trace],
        measure: Measure,
        count: int,
        generator: torch.Generator,
        *,
        rounds: int = 3,
    ) -> "TaskPosterior":
        """What the task's runs say about where it lies, from `count` locations in all."""
        base = model.with_task(task, measure.draw(32, generator).mean(0)).update(runs, learn=False)
        inputs = base.encoder.inputs(usable_segments(base.segments, base.link))
        proposals: list[Measure] = [measure]
        locations, models = zeros(0, model.posterior.hyper.embedding.shape[1]), list[TraceModel]()
        weights = log_density = zeros(0)
        with few_threads():
            for turn in range(rounds):
                if turn:
                    current = cls(task, locations, weights, log_density, tuple(models))
                    covariance = 1.5 * current.covariance + NEAREST**2 * eye(locations.shape[1])
                    proposals.append(Gaussian.of(current.mean, covariance))
                fresh = proposals[-1].draw(max(1, count // rounds), generator)
                models += [moved(base, inputs, w) for w in fresh]
                locations = torch.cat([locations, fresh])
                drawn_from = torch.stack([proposal.log_density(locations) for proposal in proposals]).logsumexp(0)
                bounds = tensor(np.array([model.bound for model in models]))
                log_density = bounds + measure.log_density(locations)
                weights = torch.softmax(log_density - drawn_from, 0)
        return cls(task, locations, weights, log_density, tuple(models))

    @property
    def mean(self) -> Float[Tensor, "dims"]:
        """Expected place."""
        return self.weights @ self.locations

    @property
    def covariance(self) -> Float[Tensor, "dims dims"]:
        """Of the place."""
        centred = self.locations - self.mean
        return centred.mT @ (self.weights[:, None] * centred)

    @property
    def spread(self) -> float:
        """How uncertain: root mean square distance from the mean."""
        return float(torch.trace(self.covariance).sqrt())

    def point(self) -> TraceModel:
        """The model with the task at its most probable place of those that were tried."""
        return self.models[int(self.log_density.argmax())]

    def sample(self, count: int, generator: torch.Generator) -> tuple[TraceModel, ...]:
        """Models by weight: each as often as its weight says, up to one (systematic resampling)."""
        offset = float(torch.rand((), dtype=torch.float64, generator=generator))
        at = (torch.arange(count, dtype=torch.float64) + offset) / count
        chosen = torch.searchsorted(self.weights.cumsum(0), at).clamp_max(len(self.weights) - 1)
        return tuple(self.models[int(i)] for i in chosen)


def moved(model: TraceModel, inputs: Float[Tensor, "n d"], w: Float[Tensor, "dims"]) -> TraceModel:
    """The model with its last task at w: hyperparameters as they are, beliefs solved anew from the rows it has."""
    now = model.posterior
    hyper = replace(now.hyper, embedding=torch.cat([now.hyper.embedding[:-1], w[None]]))
    posterior = solved_posterior(inputs, model.likelihood, hyper, now.sites, now.inducing)
    return replace(model, process=ConditionedProcess(posterior))
