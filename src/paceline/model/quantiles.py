"""One-step quantiles without sampling.

For a link with one latent the increment is a monotone function of a Gaussian: its quantile is the link of the
Gaussian's. With more latents, P(increment <= c) = E Phi((amplitude^-1(c / curve(f_2, .., f_p)) - m1) / sd1). This
increases with c, so bisection on the scale of the first latent finds the quantile.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.linalg import normal_cdf, normal_quantile
from paceline.model.links import Link
from paceline.model.quadrature import hermite, normal_points

CURVE_NODES, CURVE_POINTS = 20, 2048  # over one latent of the curve, and over several
BISECTIONS = 70  # enough halvings for float64


def increment_quantile(
    link: Link,
    alpha: float,
    mean: Float[Tensor, "p *b"],
    variance: Float[Tensor, "p *b"],
    elapsed: Float[Tensor, ""],
) -> Float[Tensor, "*b"]:
    """The alpha-quantile of eta(f, elapsed) for independent Gaussian latents."""
    deviation = variance.sqrt()
    z_alpha = normal_quantile(alpha)
    if link.latents == 1:
        return link(mean + z_alpha * deviation, elapsed)
    size = link.latents - 1
    z, w = _curve_rule(size)
    f = mean[1:, ..., None] + deviation[1:, ..., None] * z.reshape(size, *(1,) * (mean.ndim - 1), -1)
    curve = link.curve(f if size > 1 else f[0], elapsed)
    # c = amplitude(u) * mean curve; these bounds on u hold for every value of the other latents
    mean_curve = (curve @ w)[..., None]
    low, high = mean[0] - 12 * deviation[0] - 30, mean[0] + 12 * deviation[0] + 30
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        u = link.inverse_amplitude(link.amplitude(middle)[..., None] * mean_curve / curve.clamp_min(1e-300))
        below = normal_cdf((u - mean[0, ..., None]) / deviation[0, ..., None]) @ w < alpha
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return link.amplitude((low + high) / 2) * mean_curve[..., 0]


def _curve_rule(size: int) -> tuple[Float[Tensor, "size nodes"], Float[Tensor, "nodes"]]:
    """Nodes and weights over the latents of a curve. P(increment <= c) is almost a step in them."""
    if size == 1:
        z, w = hermite(CURVE_NODES)
        return z[None], w
    return normal_points(CURVE_POINTS, size), torch.full((CURVE_POINTS,), 1 / CURVE_POINTS, dtype=torch.float64)
