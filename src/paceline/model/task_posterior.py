"""The posterior of a new task's location, before its first run and during it.

p(w | runs) is proportional to p(w) p(runs | w). The first factor is a prior over locations. The second is what the
family's model says of the new task's runs if the task is at w; hyperparameters and the other tasks stay as they are. It
is computed as the bound of the fit with the task moved to w. The posterior is held as weighted locations: some are
drawn from the prior, later ones from a Gaussian around the best so far (adaptive importance sampling).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.linalg import eye, few_threads, tensor, zeros
from paceline.model.location_prior import GaussianPrior, LocationPrior
from paceline.model.preprocess import usable_segments
from paceline.model.settings import LOCATION
from paceline.model.trace_model import TraceModel
from paceline.traces import Trace


@dataclass(frozen=True, slots=True, eq=False)
class TaskPosterior:
    """p(w | runs) of a new task, as weighted locations with a model for each.

    Args:
        task: name of the new task.
        locations: w.
        weights: of the locations; they sum to one.
        log_density: log p(w) p(runs | w) at each location, up to a constant.
        models: one per location, with the task there, conditioned on its runs so far.
    """

    task: str
    locations: Float[Tensor, "n dims"]
    weights: Float[Tensor, "n"]
    log_density: Float[Tensor, "n"]
    models: tuple[TraceModel, ...]

    @classmethod
    def from_prior(
        cls, model: TraceModel, task: str, prior: LocationPrior, count: int, generator: torch.Generator
    ) -> "TaskPosterior":
        """The posterior before the first run, which is the prior.

        Args:
            model: of the family.
            task: name of the new task.
            prior: p(w).
            count: how many locations.
            generator: source of randomness.
        """
        locations = prior.draw(count, generator)
        models = tuple(model.with_task(task, w) for w in locations)
        weights = torch.full((count,), 1 / count, dtype=torch.float64)
        return cls(task, locations, weights, prior.log_density(locations), models)

    @classmethod
    def from_runs(
        cls,
        model: TraceModel,
        task: str,
        runs: Sequence[Trace],
        prior: LocationPrior,
        count: int,
        generator: torch.Generator,
    ) -> "TaskPosterior":
        """The posterior given runs of the new task; other arguments as in `from_prior`."""
        base = model.with_task(task, prior.draw(LOCATION.first_draws, generator).mean(0)).update(runs, learn=False)
        inputs = base.encoder.inputs(usable_segments(base.segments, base.link))
        proposals: list[LocationPrior] = [prior]
        locations, models = zeros(0, model.posterior.hyper.embedding.shape[1]), list[TraceModel]()
        weights = log_density = zeros(0)
        with few_threads():
            for turn in range(LOCATION.rounds):
                if turn:
                    current = cls(task, locations, weights, log_density, tuple(models))
                    covariance = LOCATION.widening * current.covariance + LOCATION.nearest**2 * eye(locations.shape[1])
                    proposals.append(GaussianPrior.of(current.mean, covariance))
                fresh = proposals[-1].draw(max(1, count // LOCATION.rounds), generator)
                models += [move_last_task(base, inputs, w) for w in fresh]
                locations = torch.cat([locations, fresh])
                log_proposal = torch.stack([proposal.log_density(locations) for proposal in proposals]).logsumexp(0)
                bounds = tensor(np.array([model.bound for model in models]))
                log_density = bounds + prior.log_density(locations)
                weights = torch.softmax(log_density - log_proposal, 0)
        return cls(task, locations, weights, log_density, tuple(models))

    @property
    def mean(self) -> Float[Tensor, "dims"]:
        """Expected location."""
        return self.weights @ self.locations

    @property
    def covariance(self) -> Float[Tensor, "dims dims"]:
        """Covariance of the location."""
        centred = self.locations - self.mean
        return centred.mT @ (self.weights[:, None] * centred)

    @property
    def spread(self) -> float:
        """How uncertain the location is: root mean square distance from the mean."""
        return float(torch.trace(self.covariance).sqrt())

    def most_probable(self) -> TraceModel:
        """The model with the task at its most probable location of those tried."""
        return self.models[int(self.log_density.argmax())]

    def sample(self, count: int, generator: torch.Generator) -> tuple[TraceModel, ...]:
        """Models, each as often as its weight says, up to one (systematic resampling)."""
        offset = float(torch.rand((), dtype=torch.float64, generator=generator))
        at = (torch.arange(count, dtype=torch.float64) + offset) / count
        chosen = torch.searchsorted(self.weights.cumsum(0), at).clamp_max(len(self.weights) - 1)
        return tuple(self.models[int(i)] for i in chosen)


def move_last_task(model: TraceModel, inputs: Float[Tensor, "n d"], w: Float[Tensor, "dims"]) -> TraceModel:
    """The model with its last task at w. Other hyperparameters stay; the sites are solved again.

    Args:
        model: a model with tasks.
        inputs: of its usable intervals.
        w: the location.
    """
    hyper = model.posterior.hyper
    return model.with_hyperparameters(replace(hyper, embedding=torch.cat([hyper.embedding[:-1], w[None]])), inputs)
