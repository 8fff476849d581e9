"""The inference engine: sparse variational Gaussian processes with Gaussian sites.

`fit_posterior` fits hyperparameters and sites to rows; the caller passes the expected log likelihood, so one engine
serves the trace model and the failure model. Hyperparameters follow the profiled bound by L-BFGS. At the optimum of the
sites, the gradient of the bound is the partial one (envelope theorem). Everything is float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import FitError
from paceline.model.kernels import Hyperparameters, fast_covariance, log_prior
from paceline.model.linalg import eigenvectors, eye, few_threads, lower_solve, tensor
from paceline.model.settings import INFERENCE
from paceline.model.sites import ExpectedLogLikelihood, Projection, RowPosterior, Sites, solve_sites


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """q(f), ready for predictions.

    mu(.) = mean + k_Z(.)' L^-T m,  Sigma(., .) = k(., .) - k_Z' L^-T (I - B^-1) L^-1 k_Z   (paper, eq. qf, whitened)

    With the eigenvectors U of I - B^-1 = U diag(share) U', a prediction takes one matrix product, k_Z' (L^-T U).
    """

    hyper: Hyperparameters
    inducing: Float[Tensor, "m d"]
    sites: Sites
    bound: float
    row_mean: Float[Tensor, "p n"]
    row_variance: Float[Tensor, "p n"]
    whitened_mean: Float[Tensor, "p m"]
    shrinkage: Float[Tensor, "p m m"]
    projection: Float[Tensor, "p m m"]
    loading: Float[Tensor, "p m"]
    share: Float[Tensor, "p m"]

    @classmethod
    def of(cls, prior: Projection, inducing: Float[Tensor, "m d"], sites: Sites, bound: float) -> "Posterior":
        """The predictions that solved sites imply."""
        rows = RowPosterior.of(prior, sites)
        assert rows is not None, "solve_sites returns sites that make a distribution"
        one = eye(prior.w.shape[1])
        inverse_b = lower_solve(rows.chol_b, one)
        whitened_mean = (inverse_b.mT @ rows.whitened[..., None])[..., 0]
        shrinkage = one - inverse_b.mT @ inverse_b
        share, axes = eigenvectors(shrinkage)
        return cls(
            hyper=prior.hyper,
            inducing=inducing,
            sites=sites,
            bound=bound,
            row_mean=rows.mean,
            row_variance=rows.variance,
            whitened_mean=whitened_mean,
            shrinkage=shrinkage,
            projection=lower_solve(prior.chol, one).mT @ axes,
            loading=(axes.mT @ whitened_mean[..., None])[..., 0],
            share=share,
        )

    def features(self, z: Float[Tensor, "*b d"]) -> Float[Tensor, "p *b m"]:
        """U' L^-1 k_Z(z)."""
        flat = fast_covariance(self.hyper, z.reshape(-1, z.shape[-1]), self.inducing) @ self.projection
        return flat.reshape(-1, *z.shape[:-1], flat.shape[-1])

    def mean(self, features: Float[Tensor, "p *b m"]) -> Float[Tensor, "p *b"]:
        """mu at points with these features."""
        flat = (features.reshape(len(features), -1, features.shape[-1]) @ self.loading[..., None])[
            ..., 0
        ] + self.hyper.mean[:, None]
        return flat.reshape(features.shape[:-1])

    def explained(self, features: Float[Tensor, "p *b m"]) -> Float[Tensor, "p *b m"]:
        """What the data explain of the covariance.

        Sigma(z, z') = k(z, z') - features(z)' explained(z')
        """
        return features * self.share.reshape(len(features), *(1,) * (features.ndim - 2), -1)

    def marginal(self, z: Float[Tensor, "*b d"]) -> tuple[Float[Tensor, "p *b"], Float[Tensor, "p *b"]]:
        """Mean and variance of f(z), without the random effect."""
        w = self.features(z)
        variance = self.hyper.variance.reshape(-1, *(1,) * (z.ndim - 1)) - (w * self.explained(w)).sum(-1)
        return self.mean(w), variance.clamp_min(1e-12)


def farthest_points(inputs: Float[Tensor, "n d"], most: int) -> Int[Tensor, "chosen"]:
    """Indices of rows that cover the inputs: each next one is the farthest from those before; no duplicates."""
    chosen = [0]
    gap = torch.cdist(inputs, inputs[chosen]).min(1).values
    while len(chosen) < min(most, len(inputs)):
        index = int(gap.argmax())
        if float(gap[index]) < 1e-6:
            break
        chosen.append(index)
        gap = torch.minimum(gap, (inputs - inputs[index]).square().sum(1).sqrt())
    return torch.tensor(chosen)


def fit_posterior(
    inputs: Float[Tensor, "n d"],
    likelihood: ExpectedLogLikelihood,
    hyper: Hyperparameters,
    sites: Sites,
    *,
    inducing: Int[Tensor, "m"],
    centre: Float[Tensor, "p"],
    iterations: int = INFERENCE.iterations,
    callback: "Callable[[float], None] | None" = None,
) -> Posterior:
    """Fit hyperparameters and sites to the rows.

    Args:
        inputs: one row per interval or label.
        likelihood: E(means, variances), the total expected log likelihood, differentiable in both.
        hyper: hyperparameters to start from; those of an earlier fit make a warm start.
        sites: sites to start from, likewise.
        inducing: which rows are inducing points.
        centre: prior mean of the constant mean.
        iterations: most steps of L-BFGS; 0 keeps the hyperparameters.
        callback: called with the bound after each evaluation.
    """
    z = inputs[inducing]
    best: tuple[float, Tensor, Sites] = (-np.inf, hyper.free(), sites)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        free = tensor(vector).requires_grad_()
        candidate = hyper.with_free(free)
        try:
            prior = Projection.of(candidate, inputs, z)
        except FitError:
            return 1e10, np.zeros_like(vector)
        solved, bound = solve_sites(prior.detach(), best[2], likelihood)
        rows = RowPosterior.of(prior, solved)
        assert rows is not None
        value = likelihood(rows.mean, rows.variance) - rows.kl + log_prior(candidate, centre)
        (gradient,) = torch.autograd.grad(value, free)
        score = float(value.detach())
        if score > best[0]:
            best = (score, free.detach(), solved)
        if callback is not None:
            callback(bound)
        return -score, -gradient.numpy()

    with few_threads(work=len(inputs) * len(z) ** 2):
        if iterations > 0:
            from scipy.optimize import minimize  # imported late: it takes as long as all of numpy

            start, tolerance = hyper.free().numpy(), INFERENCE.lbfgs_tolerance
            minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "ftol": tolerance})
        return solve_posterior(inputs, likelihood, hyper.with_free(best[1]), best[2], z)


def solve_posterior(
    inputs: Float[Tensor, "n d"],
    likelihood: ExpectedLogLikelihood,
    hyper: Hyperparameters,
    sites: Sites,
    inducing: Float[Tensor, "m d"],
) -> Posterior:
    """The posterior at these hyperparameters: the best sites, starting from `sites`."""
    prior = Projection.of(hyper, inputs, inducing)
    solved, bound = solve_sites(prior, sites, likelihood, tolerance=INFERENCE.final_tolerance)
    return Posterior.of(prior, inducing, solved, bound)
