"""Several runs of the classifiers at once, in lockstep: the same steps as of their `TorchTraining`, stacked.

A run of a thousand small steps is mostly overhead; twenty of them at once take a fraction of twenty times as long. Each
has its own data, rates, seed and Adam; nothing is shared. Numbers agree with single runs up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from experiments._svgp import EVERY, STEPS, Images, negative_elbo, parts, training
from paceline import Schedule

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's Adam


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A run to be made: its images, schedule and seed (of `training`)."""

    data: Images
    schedule: Schedule
    seed: int


def side_by_side(runs: Sequence[Planned], *, steps: int = STEPS, every: int = EVERY) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the values of each run there (runs, steps); NaN from where a run has failed."""
    rates = torch.tensor(np.stack([run.schedule(np.arange(steps)) for run in runs])).float()
    begun = [training(run.data, run.seed) for run in runs]
    p = {name: torch.cat([parts(t.model)[name] for t in begun]).detach() for name in parts(begun[0].model)}
    p = {name: value.clone().requires_grad_() for name, value in p.items()}
    first, second = ({name: torch.zeros_like(value) for name, value in p.items()} for _ in range(2))
    images, batches = torch.stack([run.data.count for run in runs]), torch.stack([_batches(t, steps) for t in begun], 1)
    held = list({id(run.data): run.data for run in runs}.values())  # all images in one place, looked up at once
    pixels, labels = torch.cat([data.x for data in held]), torch.cat([data.y for data in held])
    begins = dict(zip(map(id, held), np.cumsum([0, *(len(data.x) for data in held)]).tolist(), strict=False))
    batches = batches + torch.tensor([begins[id(run.data)] for run in runs])[:, None]
    judged = [torch.stack([getattr(run.data, of)[run.data.judged] for run in runs]) for of in ("x", "y")]
    at, seen = [0], [_observed(p, judged, images)]
    for step in range(steps):
        loss = negative_elbo(p, pixels[batches[step]], labels[batches[step]], images).sum()
        slopes = dict(zip(p, torch.autograd.grad(loss, list(p.values())), strict=True))
        with torch.no_grad():
            for name, value in p.items():
                g, rate = slopes[name], rates[:, step].reshape(-1, *(1,) * (value.dim() - 1))
                m, v = first[name].lerp_(g, 1 - BETA1), second[name].mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
                root = v.sqrt().div_((1 - BETA2 ** (step + 1)) ** 0.5).add_(EPSILON)
                value.sub_(rate / (1 - BETA1 ** (step + 1)) * m / root)
        if (step + 1) % every == 0:
            at.append(step + 1)
            seen.append(_observed(p, judged, images))
    return np.array(at), torch.stack(seen, 1).double().numpy()


def _batches(begun: object, steps: int) -> Tensor:
    """Numbers of the images of each step, as the training itself would draw them."""
    with begun.randomness.activate():
        return torch.stack(list(islice(iter(begun.batches.next, None), steps)))


@torch.no_grad()
def _observed(p: dict[str, Tensor], judged: list[Tensor], images: Tensor) -> Tensor:
    return negative_elbo(p, judged[0], judged[1], images)
