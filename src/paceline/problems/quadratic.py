"""The noisy quadratic: a training with a closed form, and the best schedule it allows (Wu and others, 2018).

Loss(theta) = sum_i h_i theta_i^2 / 2, gradients h_i theta_i + s sqrt(h_i) e_i with e_i standard normal, plain SGD. Then

m_i <- (1 - lr h_i)^2 m_i + lr^2 s^2 h_i,   E Loss = sum_i h_i m_i / 2,   m_i = E theta_i^2,

for any schedule. Lowering the rate always pays at once, because it cuts the noise; that is the trap for greedy tuners.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from paceline.traces import Schedule
from paceline.training import AVERAGE_SHARE, Observation


@dataclass(frozen=True, slots=True)
class Quadratic:
    """A noisy quadratic with curvatures 1, 1/2, 1/3, ... (to a power) and noise s; rates below 2 are stable."""

    noise: float = 1.0
    dims: int = 100
    power: float = 1.0

    @property
    def curvature(self) -> Float[np.ndarray, "dims"]:
        """h."""
        return 1.0 / np.arange(1, self.dims + 1) ** self.power

    def loss(self, theta: Float[np.ndarray, "dims"]) -> float:
        """Loss at a point."""
        return float(0.5 * self.curvature @ theta**2)

    def expected_loss(self, schedule: Schedule) -> Float[np.ndarray, "observations"]:
        """E Loss before the first step and after each, from theta = (1, 1, ...)."""
        h, moment = self.curvature, np.ones(self.dims)
        losses = [float(0.5 * h @ moment)]
        for rate in schedule(np.arange(schedule.steps)):
            moment = (1 - rate * h) ** 2 * moment + rate**2 * self.noise**2 * h
            losses.append(float(0.5 * h @ moment))
        return np.array(losses)

    def best_schedule(self, steps: int, pieces: int = 20, iterations: int = 150) -> Schedule:
        """The piecewise-constant schedule of least expected final loss, by gradient descent on its logarithm."""
        h = torch.tensor(self.curvature)
        points = np.linspace(0, steps, pieces + 1).round().astype(int)
        lengths = torch.tensor(np.diff(points))
        log_rates = torch.log(torch.linspace(0.3, 0.02, pieces, dtype=torch.float64)).requires_grad_()
        optimiser = torch.optim.Adam([log_rates], lr=0.05)
        for _ in range(iterations):
            moment = torch.ones(self.dims, dtype=torch.float64)
            for log_rate, length in zip(log_rates, lengths, strict=True):
                # n equal steps at once: m <- c^n m + (1 - c^n) / (1 - c) lr^2 s^2 h,  c = (1 - lr h)^2
                rate = torch.exp(log_rate.clamp(max=0.6))
                c = (1 - rate * h).square()
                decay = c**length
                moment = decay * moment + (1 - decay) / (1 - c) * rate.square() * self.noise**2 * h
            optimiser.zero_grad()
            torch.log((h * moment).sum()).backward()  # pyright: ignore[reportUnknownMemberType]
            optimiser.step()  # pyright: ignore[reportUnknownMemberType]
        return Schedule(log_rates.detach().clamp(max=0.6).exp().numpy(), points)


class QuadraticTraining:
    """One run of SGD on a noisy quadratic, with the average of its weights."""

    def __init__(self, problem: Quadratic, seed: int = 0, *, every: int = 10) -> None:
        self.problem, self.seed, self.every, self.steps_done = problem, seed, every, 0
        self.theta, self.average = np.ones(problem.dims), np.ones(problem.dims)

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train on to step `stop`."""
        h, root = self.problem.curvature, self.problem.noise * np.sqrt(self.problem.curvature)
        rates = schedule(np.arange(self.steps_done, stop))
        for rate in rates:
            noise = np.random.default_rng([self.seed, self.steps_done]).standard_normal(len(h))
            self.theta = self.theta - rate * (h * self.theta + root * noise)
            self.average = self.average + (self.theta - self.average) / (1 + AVERAGE_SHARE * self.steps_done)
            self.steps_done += 1
            if self.steps_done % self.every == 0 or self.steps_done == stop:
                yield (
                    self.steps_done,
                    {"raw": self.problem.loss(self.theta), "averaged": self.problem.loss(self.average)},
                )

    def state_dict(self) -> dict[str, Any]:
        """Weights, their average, the step and the seed."""
        weights = {"theta": torch.tensor(self.theta)}
        return {"done": self.steps_done, "seed": self.seed, "model": weights, "averaged": torch.tensor(self.average)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.steps_done, self.seed = int(state["done"]), int(state["seed"])
        self.theta, self.average = state["model"]["theta"].numpy().copy(), state["averaged"].numpy().copy()

    def reseed(self, seed: int) -> None:
        """Draw other noise from now on."""
        self.seed = seed
