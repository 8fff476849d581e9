"""One-step quantiles against Monte Carlo."""

import numpy as np
import pytest
import torch

from paceline.model import LINKS, link_of
from paceline.model.quantiles import increment_quantile


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", list(LINKS))
def test_one_step_quantiles_agree_with_monte_carlo(name: str, alpha: float, rng: np.random.Generator) -> None:
    link, draws = link_of(name), 200_000
    mean, variance = (
        torch.from_numpy(rng.normal(0, 1, (link.latents, 3))),
        torch.from_numpy(rng.uniform(0.05, 1, (link.latents, 3))),
    )
    elapsed = torch.tensor(0.8).double()
    exact = increment_quantile(link, alpha, mean, variance, elapsed)
    f = mean[..., None] + variance[..., None].sqrt() * torch.from_numpy(rng.standard_normal((link.latents, 3, draws)))
    samples = link(f, elapsed)
    below = (samples <= exact[:, None]).double().mean(1)
    error = 4 * np.sqrt(alpha * (1 - alpha) / draws)
    np.testing.assert_allclose(below.numpy(), alpha, atol=error)
