"""Synthetic runs, drawn from the model itself. The latent functions, the noise and the random effect are known.

The latent functions are draws of a Gaussian process with the model's own kernel, by random Fourier features: a
Matern-5/2 kernel in one input is the mean of cos(w (a - b)) over w from a Student t law with five degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from paceline.model import Link, link_of
from paceline.traces import LearningRateRange, Objective, Schedule, Trace


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticFamily:
    """Runs of one task. Their increments follow latent functions of (Y, x) that are drawn once.

    Args:
        link: eta.
        frequencies: frequencies of the Fourier features of each latent function, over (Y, x).
        phases: phases of these features.
        weights: weights of these features.
        means: constant means of the latent functions.
        noise: standard deviation of one observation.
        effect: standard deviation of each interval's random effect on the latent values.
        lr_range: bounds of the rate.
    """

    link: Link
    frequencies: Float[np.ndarray, "p features 2"]
    phases: Float[np.ndarray, "p features"]
    weights: Float[np.ndarray, "p features"]
    means: tuple[float, ...]
    noise: float
    effect: float
    lr_range: LearningRateRange

    @classmethod
    def of(
        cls,
        link: "str | Link",
        rng: np.random.Generator,
        *,
        scale: float = 1.0,
        lengthscale: float = 0.6,
        noise: float = 0.01,
        effect: float = 0.15,
        features: int = 500,
    ) -> "SyntheticFamily":
        """Draw the latent functions: deviation `scale` around means that bring a run to about 1 in ten intervals."""
        eta = link_of(link)
        frequencies = rng.standard_t(5, size=(eta.latents, features, 2)) / lengthscale
        phases = rng.uniform(0, 2 * np.pi, size=(eta.latents, features))
        weights = scale * np.sqrt(2 / features) * rng.standard_normal((eta.latents, features))
        means = _means(eta)
        if eta.signed:
            weights[0] *= 0.1
        return cls(
            eta,
            frequencies,
            phases,
            weights,
            means,
            noise,
            0.1 * effect if eta.signed else effect,
            LearningRateRange(1e-4, 1e-1),
        )

    def latent(self, value: float, unit_lr: float) -> Float[np.ndarray, "p"]:
        """f(Y, x)."""
        waves = np.cos(self.frequencies @ np.array([value, unit_lr]) + self.phases)
        return np.array(self.means) + (self.weights * waves).sum(-1)

    def run(
        self,
        unit_lr: Float[np.ndarray, "intervals"],
        rng: np.random.Generator,
        *,
        length: int = 40,
        every: int = 2,
        start: float = 0.0,
        name: str = "",
    ) -> Trace:
        """One run with a rate per interval of `length` steps, recorded every `every` steps."""
        intervals = len(unit_lr)
        schedule = Schedule(self.lr_range.from_unit(unit_lr), np.arange(intervals + 1) * length)
        elapsed = torch.arange(every, length + 1, every, dtype=torch.float64) / length
        level, levels = start, [start]
        for x in unit_lr:
            h = self.latent(level, float(x)) + self.effect * rng.standard_normal(self.link.latents)
            levels.extend((level + self.link(torch.tensor(h)[:, None], elapsed).numpy()).tolist())
            level = levels[-1]
        values = np.array(levels) + self.noise * rng.standard_normal(len(levels))
        steps = np.arange(len(levels)) * every
        return Trace(steps, values, schedule, name=name, objective=Objective(mode="max"))


def _means(link: Link) -> tuple[float, ...]:
    """Means of the latent functions."""
    if link.latents <= 2:
        return ((0.1, 1.0) if link.signed else (-2.2,) if link.latents == 1 else (-1.6, 1.0))[: link.latents]
    curve = (1.0, 0.5, 0.0)[: link.latents - 1]
    increment = link.curve(torch.tensor(curve, dtype=torch.float64), torch.ones((), dtype=torch.float64))
    return (float(link.inverse_amplitude(0.2 / increment)), *curve)
