"""The problems as a torch user writes them: a model, an optimiser and a loop, for methods that are no tuners.

Weights to start from, data and their order are those of the trainings in `_problems`, and so is the value. The loss of
a quadratic has no batch: its value is exact, as tuners see it too, and its gradient carries the noise.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._problems import Problem
from paceline.problems import QuadraticTraining
from paceline.training import TorchTraining


class Plain(NamedTuple):
    """What a loop needs: `optimizer` makes the problem's own optimiser over the model."""

    model: nn.Module
    optimizer: Callable[[], torch.optim.Optimizer]
    batches: Iterator[Any]
    loss: Callable[[nn.Module, Any], Tensor]
    evaluate: Callable[[nn.Module], float]


class Weights(nn.Module):
    """Weights that are all there is of a model."""

    def __init__(self, theta: np.ndarray) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(theta))


def plain(problem: Problem, seed: int) -> Plain:
    """One run of a problem; draws batches with torch's global generator, which it seeds."""
    training = problem.make(seed)
    torch.manual_seed(seed)
    if isinstance(training, QuadraticTraining):
        return _quadratic(training)
    assert isinstance(training, TorchTraining)
    assert training.evaluate is not None
    model, evaluate = training.model, torch.no_grad()(training.evaluate)
    return Plain(model, lambda: training.optimizer, _endless(training.batches.source), training.loss, evaluate)


def _endless(batches: Any) -> Iterator[Any]:
    while True:
        yield from batches


def _quadratic(training: QuadraticTraining) -> Plain:
    problem, model = training.problem, Weights(training.theta)
    curvature = torch.tensor(problem.curvature)

    def noise() -> Iterator[Tensor]:
        step = 0
        while True:
            noise_of_step = np.random.default_rng([training.seed, step]).standard_normal(problem.dims)
            yield problem.noise * curvature.sqrt() * torch.tensor(noise_of_step)
            step += 1

    def loss(net: nn.Module, push: Tensor) -> Tensor:
        theta = net.get_parameter("theta")
        return 0.5 * (curvature * theta.square()).sum() + (push * (theta - theta.detach())).sum()

    return Plain(
        model,
        lambda: torch.optim.SGD(model.parameters(), lr=1.0),
        noise(),
        loss,
        lambda net: problem.loss(net.get_parameter("theta").detach().numpy()),
    )
