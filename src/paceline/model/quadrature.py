"""Expectations under a one-dimensional Gaussian by Gauss-Hermite nodes."""

from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Float
from torch import Tensor

from paceline.model.linalg import tensor


@cache
def hermite(nodes: int) -> tuple[Float[Tensor, "nodes"], Float[Tensor, "nodes"]]:
    """Nodes z and weights w with sum_k w_k g(z_k) = E g(Z), Z standard normal; exact up to degree 2 nodes - 1."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return tensor(z), tensor(w / w.sum())


def expectation(
    function: Callable[[Tensor], Tensor], mean: Float[Tensor, "*b"], variance: Float[Tensor, "*b"], nodes: int = 20
) -> Float[Tensor, "*b"]:
    """E g(F), F ~ N(mean, variance), elementwise."""
    z, w = hermite(nodes)
    return (function(mean[..., None] + variance.sqrt()[..., None] * z) * w).sum(-1)
