"""One-step quantiles without sampling.

For a link with one latent the increment is a monotone function of a Gaussian: its quantile is the link of the
Gaussian's. With a second latent, P(increment <= c) = E_f2 Phi((amplitude^-1(c / shape(f2)) - m1) / sd1): increasing in
c, so its root is found by bisection on the first latent's scale.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.likelihood import AMPLITUDE_NODES
from paceline.model.linalg import normal_cdf, normal_quantile
from paceline.model.links import Link
from paceline.model.quadrature import hermite


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
    z, w = hermite(AMPLITUDE_NODES)
    shape = link.curve(mean[1, ..., None] + deviation[1, ..., None] * z, elapsed)
    # c = amplitude(u) * typical shape; u lies where the shape is taken to its extremes
    typical = (shape @ w)[..., None]
    low, high = mean[0] - 12 * deviation[0] - 30, mean[0] + 12 * deviation[0] + 30
    for _ in range(70):
        middle = (low + high) / 2
        u = link.inverse_amplitude(link.amplitude(middle)[..., None] * typical / shape.clamp_min(1e-300))
        below = normal_cdf((u - mean[0, ..., None]) / deviation[0, ..., None]) @ w < alpha
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return link.amplitude((low + high) / 2) * typical[..., 0]
