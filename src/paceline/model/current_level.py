"""The current level of a run: the trace behind its last, noisy observation.

y_j = L - a (g_n - g_j) + e_j for the n + 1 observations of its last interval. g is the curve at the expected f_2, ..,
f_p, and the amplitude a has the mean and variance that the model expects. This is a linear regression for the level L.
"""

import numpy as np
from jaxtyping import Float
from torch import Tensor

from paceline.model.encoder import PastIntervals, TraceEncoder
from paceline.model.linalg import tensor
from paceline.model.links import Link
from paceline.model.posterior import Posterior
from paceline.model.quadrature import expectation


def current_level(
    encoder: TraceEncoder,
    link: Link,
    posterior: Posterior,
    past: PastIntervals,
    noise: Float[Tensor, ""],
    normals: Float[Tensor, "*draws"],
) -> Float[Tensor, "*draws"]:
    """Draws of the level, scaled; its expectation if the normals are zero."""
    last = past.last
    if last is None or last.moments.n == 0:
        return float(past.values[0]) + noise.sqrt() * normals
    mean, variance = posterior.marginal(encoder.inputs([last]))
    variance = variance + posterior.hyper.nugget[:, None]
    elapsed = tensor(np.append(0.0, last.elapsed) / encoder.scaling.interval)
    y = tensor(encoder.scaling.to_scaled(last.start_values[0] + np.append(0.0, last.residuals)))
    g = link.curve_of(mean, elapsed)
    amplitude = expectation(link.amplitude, mean[0, 0], variance[0, 0])
    square = expectation(lambda f: link.amplitude(f).square(), mean[0, 0], variance[0, 0])
    spread, d = (square - amplitude.square()).clamp_min(1e-12), g[-1] - g
    kappa = spread / (noise + spread * (d @ d))
    precision = (len(d) - kappa * d.sum().square()).clamp_min(1.0)
    centred = y + amplitude * d
    level = (centred.sum() - kappa * d.sum() * (d @ centred)) / precision
    return level + (noise / precision).sqrt() * normals
