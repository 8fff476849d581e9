"""The learning rates of an optimiser's groups: the first group's is tuned, the others keep their ratio to it."""

import numpy as np
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from paceline.errors import InputError


def ratios_of(optimizer: Optimizer) -> Float[np.ndarray, "groups"]:
    """Each group's rate over that of the first."""
    if not getattr(optimizer, "param_groups", None):
        what = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else f"a {type(optimizer).__name__}"
        raise InputError(
            f"expected a torch optimiser, with param_groups, got {what}: pass torch.optim.AdamW(model.parameters())"
        )
    rates = np.array([float(group["lr"]) for group in optimizer.param_groups])
    if not rates[0] > 0:
        raise InputError(
            f"the optimiser's first rate must be positive, got {rates[0]}: the ratios of its groups refer "
            "to it; where there is one group any rate will do, 1e-3"
        )
    return rates / rates[0]


def set_rates(optimizer: Optimizer, rates: Float[np.ndarray, "groups"]) -> None:
    """Write a rate into each group; one that is a tensor keeps its place in memory."""
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(float(rate))
        else:
            group["lr"] = float(rate)
