"""The law: a non-negative sum of simple terms in the state of a run.

loss = L0 + A (u / Smax)^-a + sum_j B_j exp(-k_j S / Smax) + (u / (Smax + S0))^z sum_i w_i N_i,   u = S + S0

Progress on the clock S is a power law, as in long runs of large models, plus a few exponentials, which small problems
add (every completely monotone function is a sum of exponentials). The noise that a lower rate would anneal is a sum of
relaxation modes. No coefficient is negative, so the law cannot oscillate. Four numbers enter non-linearly, the
exponents: log a, log S0 / Smax, g and z.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.law.settings import FORM
from paceline.model.law.state import SPEEDS
from paceline.model.linalg import tensor

DECAYS = np.array(FORM.decays)  # k_j
COUNT = 2 + len(DECAYS) + len(SPEEDS) + 1  # of terms: L0, A, B_j, w_i
EXPONENTIALS, NOISE = slice(2, 2 + len(DECAYS)), slice(2 + len(DECAYS), COUNT)

# Priors of the exponents (log a, log S0 / Smax, g, z): mean and deviation.
CENTRE = np.array([np.log(FORM.exponent_centre[0]), np.log(FORM.exponent_centre[1]), *FORM.exponent_centre[2:]])
SPREAD = np.array(FORM.exponent_spread)


def terms(
    exponents: Float[Tensor, "*draws 4"],
    rate_sum: Float[Tensor, "steps"],
    noise: Float[Tensor, "*draws steps modes"],
    largest: float,
) -> Float[Tensor, "*draws steps terms"]:
    """The columns that the coefficients (L0, A, B, w) multiply.

    Args:
        exponents: (log a, log S0 / Smax, g, z).
        rate_sum: S.
        noise: N.
        largest: Smax.
    """
    a, origin, z = torch.exp(exponents[..., :1]), torch.exp(exponents[..., 1:2]), exponents[..., 3:4]
    s = rate_sum / largest
    u = s + origin
    power = u**-a
    scale = (u / (1.0 + origin)) ** z
    exponentials = torch.exp(-s[:, None] * tensor(DECAYS)).expand(*power.shape, len(DECAYS))
    return torch.cat([torch.ones_like(power)[..., None], power[..., None], exponentials, scale[..., None] * noise], -1)


def progress_left(
    exponents: Float[Tensor, "4"],
    coefficients: Float[Tensor, "terms"],
    rate_sum: Float[Tensor, "steps"],
    largest: float,
) -> tuple[Float[Tensor, "steps"], Float[Tensor, "steps"]]:
    """The part of the loss that falls with S alone, and its slope -d / d log S."""
    s, a, origin = rate_sum / largest, torch.exp(exponents[0]), torch.exp(exponents[1])
    power = coefficients[1] * (s + origin) ** -a
    decays = tensor(DECAYS)
    exponentials = coefficients[EXPONENTIALS] * torch.exp(-s[:, None] * decays)
    slope = a * power * s / (s + origin) + (exponentials * decays * s[:, None]).sum(1)
    return power + exponentials.sum(1), slope


def prior_precision(typical: float, span: float) -> Float[np.ndarray, "terms"]:
    """Prior precision of each coefficient about zero, before the heavy tails of the exponentials.

    Args:
        typical: a typical loss.
        span: deviation of the observed log losses.
    """
    moved = typical * min(1.0, span)
    scale = np.full(COUNT, FORM.coefficient_scale * typical)
    scale[EXPONENTIALS], scale[NOISE] = FORM.exponential_scale * moved, FORM.noise_scale * moved
    return scale**-2.0


def neighbour_precision(precision: Float[np.ndarray, "terms"]) -> Float[np.ndarray, "terms terms"]:
    """Prior precision of the differences between the weights of neighbouring modes.

    Before a high rate has been annealed, noise that relaxes slowly looks like progress still to be made. Non-negative
    least squares then gives all of it to one mode, and plans hold high rates too long.
    """
    difference = np.zeros((COUNT, COUNT))
    mode = np.arange(NOISE.start, NOISE.stop - 1)
    difference[mode, mode], difference[mode, mode + 1] = 1.0, -1.0
    return difference.T @ difference * precision[NOISE.start] / FORM.neighbour_scale**2
