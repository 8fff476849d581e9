"""`horizon` over Adam on the quadratics, whose own optimiser is SGD: what part of Prodigy's result is Adam's."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks._plain import plain
from benchmarks._problems import Problem
from paceline.problems import Quadratic
from paceline.training import TorchTraining


class Pushes:
    """Noise of the gradients without end, drawn with torch's generator, so that clones see other noise."""

    def __init__(self, quadratic: Quadratic) -> None:
        self.scale = quadratic.noise * torch.tensor(quadratic.curvature).sqrt()

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            yield self.scale * torch.randn(len(self.scale), dtype=torch.float64)


def with_adam(problem: Problem) -> Problem:
    """The same problem and bounds, trained by Adam."""

    def make(seed: int) -> TorchTraining:
        run, own = plain(problem, seed), problem.make(seed)
        training = TorchTraining(
            run.model,
            torch.optim.Adam(run.model.parameters()),
            batches=Pushes(_quadratic(own)),
            loss=run.loss,
            evaluate=lambda net: run.evaluate(net),
            every=10,
        )
        training.reseed(seed)
        return training

    return problem._replace(make=make)


def _quadratic(training: Any) -> Quadratic:
    return training.problem
