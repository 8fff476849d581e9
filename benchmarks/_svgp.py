"""The same trace model as a GPyTorch SVGP on all observations: what the paper did with GPflow, at its best settings.

Same kernel, inducing points, start values and likelihood as ours with anchor noise and random effect off; the expected
log likelihood is evaluated in closed form up to one-dimensional quadrature, which is kinder to it than Monte Carlo.
"""

import time
from dataclasses import dataclass

import gpytorch
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from paceline.model import TraceModel, hermite, usable_segments


@dataclass
class Observations:
    """All observations of the intervals of a model, one row each."""

    inputs: Tensor
    row: Tensor
    elapsed: Tensor
    residuals: Tensor

    @classmethod
    def of(cls, model: TraceModel) -> "Observations":
        used = usable_segments(model.segments, model.link)
        row = torch.repeat_interleave(torch.tensor([s.moments.n for s in used]))
        elapsed = torch.cat([torch.from_numpy(s.elapsed) for s in used]) / model.encoder.scaling.interval
        residuals = torch.cat([torch.from_numpy(s.residuals) for s in used]) / model.encoder.scaling.scale
        return cls(model.encoder.inputs(used)[row], row, elapsed, residuals)


class LatentGP(gpytorch.models.ApproximateGP):
    """p independent latent functions with a product of Matern-5/2 kernels on (Y, x)."""

    def __init__(self, inducing: Tensor, means: Tensor, *, natural: bool) -> None:
        p, m = len(means), len(inducing)
        kind = (
            gpytorch.variational.NaturalVariationalDistribution
            if natural
            else gpytorch.variational.CholeskyVariationalDistribution
        )
        q = kind(m, batch_shape=torch.Size([p]))
        inner = gpytorch.variational.VariationalStrategy(self, inducing, q, learn_inducing_locations=False)
        super().__init__(inner)
        batch = torch.Size([p])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        product = MaternKernel(2.5, active_dims=[0], batch_shape=batch) * MaternKernel(
            2.5, active_dims=[1], batch_shape=batch
        )
        self.covar_module = ScaleKernel(product, batch_shape=batch)
        self.mean_module.initialize(constant=means)
        self.covar_module.outputscale = torch.full((p,), 0.3).exp() ** 2
        for part in product.kernels:
            part.lengthscale = 0.5

    def forward(self, z: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))


def expected_log_likelihood(
    model: TraceModel, data: Observations, part: Tensor, mean: Tensor, variance: Tensor, noise: Tensor
) -> Tensor:
    """Sum over observations of E log N(r | eta(f, t), noise)."""
    link = model.link
    z, w = hermite(20)
    amplitude = link.amplitude(mean[0, :, None] + variance[0, :, None].sqrt() * z)
    first, second = amplitude @ w, amplitude.square() @ w
    if link.latents == 1:
        g = data.elapsed[part]
        gg = g.square()
    else:
        z, w = hermite(8)
        shape = link.curve(mean[1, :, None] + variance[1, :, None].sqrt() * z, data.elapsed[part, None])
        g, gg = shape @ w, shape.square() @ w
    r = data.residuals[part]
    sse = r.square() - 2 * r * first * g + second * gg
    return -0.5 * (torch.log(2 * torch.pi * noise) + sse / noise).sum()


def train(
    model: TraceModel,
    data: Observations,
    rate: float,
    natural_rate: float | None,
    batch: int,
    *,
    seconds: float,
    enough: float,
    seed: int,
) -> list[tuple[float, float]]:
    """(seconds of training, ELBO on all observations) along the way; evaluation time is not counted.

    Ends when the ELBO is `enough`, when time is up, or when the posterior stops being a distribution.
    """
    natural = natural_rate is not None
    gp = LatentGP(model.posterior.inducing, model.centre, natural=natural)
    log_noise = torch.log(model._noise_variance() * 1.5).detach().clone().requires_grad_()
    hyper = [parameter for name, parameter in gp.named_parameters() if "variational_distribution" not in name]
    optimisers: list[torch.optim.Optimizer] = []
    if natural:
        optimisers.append(gpytorch.optim.NGD(gp.variational_parameters(), num_data=len(data.row), lr=natural_rate))
        optimisers.append(torch.optim.Adam([*hyper, log_noise], lr=rate))
    else:
        optimisers.append(torch.optim.Adam([*gp.parameters(), log_noise], lr=rate))
    total, generator = len(data.row), torch.Generator().manual_seed(seed)

    def elbo(part: Tensor, scale: float) -> Tensor:
        q = gp(data.inputs[part])
        fit = expected_log_likelihood(model, data, part, q.mean, q.variance, log_noise.exp())
        return scale * fit - gp.variational_strategy.kl_divergence().sum()

    gp.train()
    curve, spent, step = list[tuple[float, float]](), 0.0, 0
    everything = torch.arange(total)
    while spent < seconds:
        began = time.perf_counter()
        part = everything if batch >= total else torch.randint(total, (batch,), generator=generator)
        for optimiser in optimisers:
            optimiser.zero_grad()
        try:
            loss = -elbo(part, total / len(part)) / total
            loss.backward()
        except (NotPSDError, NanError):
            break
        for optimiser in optimisers:
            optimiser.step()
        spent += time.perf_counter() - began
        step += 1
        if step % 20 == 0:
            with torch.no_grad():
                curve.append((spent, float(elbo(everything, 1.0))))
            if curve[-1][1] >= enough:
                break
    return curve
