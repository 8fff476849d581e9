"""The learning rates of an optimiser's parameter groups.

The first group's rate is tuned. The others keep their ratio to it. If groups have an `lr_scale`, as those of timm's
layer decay do, the rate of a group with a scale of 1 is tuned.
"""

import numpy as np
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from paceline.errors import InputError

SAME_RATIO = 1e-6  # relative: a rate may be a 32-bit tensor


def rate_ratios(optimizer: Optimizer) -> Float[np.ndarray, "groups"]:
    """What to multiply the tuned rate by in each group: its rate divided by that of the first group.

    timm's layer decay gives each group an `lr_scale`, and its schedulers multiply the rate by it. So do we, unless the
    rates have these ratios already.
    """
    if not getattr(optimizer, "param_groups", None):
        given = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else f"a {type(optimizer).__name__}"
        raise InputError(
            f"expected a torch optimiser, with param_groups, got {given}: pass torch.optim.AdamW(model.parameters())"
        )
    rates = np.array([float(group["lr"]) for group in optimizer.param_groups])
    if not rates[0] > 0:
        raise InputError(
            f"the optimiser's first rate must be positive, got {rates[0]}: the ratios of its groups refer to it; if "
            "there is only one group, any positive rate will do, such as 1e-3"
        )
    ratios = rates / rates[0]
    scales = np.array([float(group.get("lr_scale", 1.0)) for group in optimizer.param_groups])
    return scales if np.allclose(ratios * scales[0], scales, rtol=SAME_RATIO, atol=0.0) else ratios * scales


def set_rates(optimizer: Optimizer, rates: Float[np.ndarray, "groups"]) -> None:
    """Set the rate of each group. A rate that is a tensor is changed in place."""
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(float(rate))
        else:
            group["lr"] = float(rate)
