"""Several runs of the classifiers at once, in lockstep: the same steps as those of their `TorchTraining`, stacked.

A run of a thousand small steps is mostly overhead, so twenty at once take far less than twenty times as long. Each has
its own data, rates, seed and Adam; nothing is shared. Numbers agree with single runs up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from experiments._svgp import EVERY, STEPS, Images, negative_elbo, parts, training
from paceline import Schedule, TorchTraining

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's Adam


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRun:
    """A run to be made: its images, its schedule, and the seed of its `training`."""

    data: Images
    schedule: Schedule
    seed: int


def side_by_side(
    runs: Sequence[PlannedRun], *, steps: int = STEPS, every: int = EVERY
) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the values of each run there (runs, steps); NaN from the failure of a run on."""
    rates = torch.tensor(np.stack([run.schedule(np.arange(steps)) for run in runs])).float()
    trainings = [training(run.data, run.seed) for run in runs]
    parameters = _stacked_parameters(trainings)
    images = torch.stack([run.data.count for run in runs])
    pixels, labels, batches = _stacked_batches(runs, trainings, steps)
    x, y = (torch.stack([getattr(run.data, name)[run.data.observed] for run in runs]) for name in ("x", "y"))
    adam = _StackedAdam(parameters)
    observed_at, values = [0], [_observe(parameters, x, y, images)]
    for step in range(steps):
        loss = negative_elbo(parameters, pixels[batches[step]], labels[batches[step]], images).sum()
        gradients = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
        adam.update(gradients, rates[:, step], step)
        if (step + 1) % every == 0:
            observed_at.append(step + 1)
            values.append(_observe(parameters, x, y, images))
    return np.array(observed_at), torch.stack(values, 1).double().numpy()


class _StackedAdam:
    """Adam for several runs, each with its own rate."""

    def __init__(self, parameters: dict[str, Tensor]) -> None:
        self.parameters = parameters
        self.first, self.second = ({name: torch.zeros_like(p) for name, p in parameters.items()} for _ in range(2))

    @torch.no_grad()
    def update(self, gradients: dict[str, Tensor], rates: Tensor, step: int) -> None:
        """One step of all runs."""
        for name, p in self.parameters.items():
            g, rate = gradients[name], rates.reshape(-1, *(1,) * (p.dim() - 1))
            m = self.first[name].lerp_(g, 1 - BETA1)
            v = self.second[name].mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            root = v.sqrt().div_((1 - BETA2 ** (step + 1)) ** 0.5).add_(EPSILON)
            p.sub_(rate / (1 - BETA1 ** (step + 1)) * m / root)


def _stacked_parameters(trainings: Sequence[TorchTraining]) -> dict[str, Tensor]:
    """The parameters of all runs, stacked along their first dimension."""
    each = [parts(training.model) for training in trainings]
    stacked = {name: torch.cat([parameters[name] for parameters in each]).detach() for name in each[0]}
    return {name: p.clone().requires_grad_() for name, p in stacked.items()}


def _stacked_batches(
    runs: Sequence[PlannedRun], trainings: Sequence[TorchTraining], steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """All images and labels in one place, and the numbers of the images of each step and run."""
    numbers = torch.stack([_batch_numbers(training, steps) for training in trainings], 1)
    sources = list({id(run.data): run.data for run in runs}.values())
    offsets = np.cumsum([0, *(len(data.x) for data in sources)]).tolist()
    offset = dict(zip(map(id, sources), offsets, strict=False))
    numbers = numbers + torch.tensor([offset[id(run.data)] for run in runs])[:, None]
    return torch.cat([data.x for data in sources]), torch.cat([data.y for data in sources]), numbers


def _batch_numbers(training: TorchTraining, steps: int) -> Tensor:
    """Numbers of the images of each step, as the training itself draws them."""
    with training.randomness.activate():
        return torch.stack(list(islice(iter(training.batches.next, None), steps)))


@torch.no_grad()
def _observe(parameters: dict[str, Tensor], x: Tensor, y: Tensor, images: Tensor) -> Tensor:
    return negative_elbo(parameters, x, y, images)
