"""Expectations under independent Gaussians by Gauss-Hermite nodes."""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.linalg import normal_quantiles, tensor


@cache
def hermite(nodes: int) -> tuple[Float[Tensor, "nodes"], Float[Tensor, "nodes"]]:
    """Nodes z and weights w with sum_k w_k g(z_k) = E g(Z), Z standard normal; exact up to degree 2 nodes - 1."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return tensor(z), tensor(w / w.sum())


@cache
def product_rule(nodes: int, size: int) -> tuple[Float[Tensor, "size all"], Float[Tensor, "all"]]:
    """Nodes and weights for E g(Z_1, .., Z_size): all combinations of `nodes` nodes for each."""
    z, w = hermite(nodes)
    points = torch.stack(torch.meshgrid(*[z] * size, indexing="ij")).reshape(size, -1)
    weights = torch.stack(torch.meshgrid(*[w] * size, indexing="ij")).reshape(size, -1)
    return points, weights.prod(0)


@cache
def normal_points(count: int, size: int) -> Float[Tensor, "size count"]:
    """Points that cover `size` standard normals evenly, equally likely: better than nodes for functions with steps."""
    engine = torch.quasirandom.SobolEngine(size, scramble=True, seed=0)
    return normal_quantiles(engine.draw(count, dtype=torch.float64).T.clamp(1e-12, 1 - 1e-12))


def expectation(
    function: Callable[[Tensor], Tensor], mean: Float[Tensor, "*b"], variance: Float[Tensor, "*b"], nodes: int = 20
) -> Float[Tensor, "*b"]:
    """E g(F), F ~ N(mean, variance), elementwise."""
    z, w = hermite(nodes)
    return (function(mean[..., None] + variance.sqrt()[..., None] * z) * w).sum(-1)
