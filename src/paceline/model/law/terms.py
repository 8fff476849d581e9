"""The law: a non-negative sum of simple terms in the state of a run.

loss = L0 + A (u / Smax)^-a + sum_j B_j exp(-k_j S / Smax) + (u / (Smax + S0))^z sum_i w_i N_i,   u = S + S0

Progress on the clock S is a power law (what long runs of large models follow) plus a few exponentials (what small
problems add to it: any completely monotone function is a sum of those); what a lower rate anneals is a sum of
relaxation modes. Every coefficient is non-negative, so that the law cannot oscillate. Four numbers enter non-linearly:
log a, log S0 / Smax, g and z.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.law.state import SPEEDS
from paceline.model.linalg import tensor

DECAYS = np.array([1.0, 3.0, 10.0, 30.0])  # k_j
COUNT = 2 + len(DECAYS) + len(SPEEDS) + 1
EXPONENTIALS, NOISE = slice(2, 2 + len(DECAYS)), slice(2 + len(DECAYS), COUNT)

# priors of (log a, log S0 / Smax, g, z): mean and deviation
CENTRE = np.array([np.log(0.5), np.log(0.01), 0.85, -0.1])
SPREAD = np.array([0.5, 1.5, 0.15, 0.15])
LOWEST, HIGHEST = 0.2, 1.8  # of g
# scales of the coefficients, in units of a typical loss; of the exponentials and the noise also of how far it moves
WIDE, EXPONENTIAL_SCALE, NOISE_SCALE = 10.0, 0.2, 1.0
ALIKE = 0.05  # scale of the difference between the weights of two neighbouring modes, in units of that of one


def terms(
    shape: Float[Tensor, "*draws 4"],
    rate_sum: Float[Tensor, "steps"],
    noise: Float[Tensor, "*draws steps modes"],
    largest: float,
) -> Float[Tensor, "*draws steps terms"]:
    """The columns that the coefficients (L0, A, B, w) multiply."""
    a, origin, z = torch.exp(shape[..., :1]), torch.exp(shape[..., 1:2]), shape[..., 3:4]
    s = rate_sum / largest
    u = s + origin
    power = u**-a
    scale = (u / (1.0 + origin)) ** z
    exponentials = torch.exp(-s[:, None] * tensor(DECAYS)).expand(*power.shape, len(DECAYS))
    return torch.cat([torch.ones_like(power)[..., None], power[..., None], exponentials, scale[..., None] * noise], -1)


def still_to_learn(
    shape: Float[Tensor, "4"], coefficients: Float[Tensor, "terms"], rate_sum: Float[Tensor, "steps"], largest: float
) -> tuple[Float[Tensor, "steps"], Float[Tensor, "steps"]]:
    """The part of the loss that falls with S alone, and its slope -d / d log S."""
    s, a, origin = rate_sum / largest, torch.exp(shape[0]), torch.exp(shape[1])
    power = coefficients[1] * (s + origin) ** -a
    decays = tensor(DECAYS)
    exponentials = coefficients[EXPONENTIALS] * torch.exp(-s[:, None] * decays)
    slope = a * power * s / (s + origin) + (exponentials * decays * s[:, None]).sum(1)
    return power + exponentials.sum(1), slope


def prior_precision(typical: float, span: float) -> Float[np.ndarray, "terms"]:
    """Precision of each coefficient about zero, before the exponentials' heavy tails.

    Args:
        typical: a typical loss.
        span: deviation of the log loss over what was observed.
    """
    moved = typical * min(1.0, span)
    scale = np.full(COUNT, WIDE * typical)
    scale[EXPONENTIALS], scale[NOISE] = EXPONENTIAL_SCALE * moved, NOISE_SCALE * moved
    return scale**-2.0


def alikeness(precision: Float[np.ndarray, "terms"]) -> Float[np.ndarray, "terms terms"]:
    """Precision that draws the weights of neighbouring modes together.

    Until a high rate has been annealed, noise that relaxes slowly cannot be told from progress still to be made, and
    non-negative least squares gives it all to one mode; a plan would then hold high rates too long.
    """
    difference = np.zeros((COUNT, COUNT))
    mode = np.arange(NOISE.start, NOISE.stop - 1)
    difference[mode, mode], difference[mode, mode + 1] = 1.0, -1.0
    return difference.T @ difference * precision[NOISE.start] / ALIKE**2
