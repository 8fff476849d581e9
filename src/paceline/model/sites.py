"""Gaussian sites: how the posterior over the rows is held, and the steps that improve it.

Each row i (an interval, or a label) has latent values h_i = f(z_i) + xi_i: f is a GP with inducing points Z, and xi_i a
random effect of variance nu (the nugget). The posterior is the prior times one Gaussian site per row and latent,

q(h) proportional to p(h) prod_i exp(a_i h_i - b_i h_i^2 / 2).

The best sites satisfy b = -2 dE/dv, a = dE/dm + b m, with E(m, v) the expected log likelihood. Steps towards them are
natural-gradient steps. A step is halved until the bound rises, and b may be negative. Sites belong to rows, not to
inducing points, so they stay useful when the hyperparameters, Z or the rows change.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import FitError
from paceline.model.kernels import Hyperparameters, covariance
from paceline.model.linalg import eye, lower_solve, solve, try_cholesky, zeros
from paceline.model.settings import INFERENCE

ExpectedLogLikelihood = Callable[[Float[Tensor, "p n"], Float[Tensor, "p n"]], Float[Tensor, ""]]


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """exp(a h - b h^2 / 2) for each latent and row."""

    a: Float[Tensor, "p n"]
    b: Float[Tensor, "p n"]

    @classmethod
    def none(cls, p: int, n: int) -> "Sites":
        """Sites without information."""
        return cls(zeros(p, n), zeros(p, n))

    @classmethod
    def near(cls, likelihood: ExpectedLogLikelihood, guess: Float[Tensor, "p n"]) -> "Sites":
        """The sites that rows would have if their latent values were close to a guess."""
        mean, variance = guess.clone().requires_grad_(), torch.full_like(guess, 0.05**2).requires_grad_()
        slope, variance_slope = torch.autograd.grad(likelihood(mean, variance), (mean, variance))
        b = (-2 * variance_slope).clamp_min(0.0)
        return cls(torch.where(b > 0, slope + b * guess, torch.zeros_like(b)), b)

    def towards(self, target: "Sites", rate: float) -> "Sites":
        """A natural-gradient step of length `rate`."""
        return Sites(self.a + rate * (target.a - self.a), self.b + rate * (target.b - self.b))

    def rows(self, index: Int[Tensor, "k"]) -> "Sites":
        """The sites of some of the rows."""
        return Sites(self.a[:, index], self.b[:, index])

    def concat(self, other: "Sites") -> "Sites":
        """The sites of both sets of rows."""
        return Sites(torch.cat([self.a, other.a], 1), torch.cat([self.b, other.b], 1))


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The prior over rows, projected on the inducing points: h = mean + W'v + xi, with v standard normal.

    Args:
        hyper: hyperparameters.
        chol: L with L L' = K_ZZ.
        w: W = L^-1 K_ZX.
        slack: k(z_i, z_i) - w_i'w_i, the prior variance that Z does not explain. q leaves it as it is.
    """

    hyper: Hyperparameters
    chol: Float[Tensor, "p m m"]
    w: Float[Tensor, "p m n"]
    slack: Float[Tensor, "p n"]

    @classmethod
    def of(cls, hyper: Hyperparameters, inputs: Float[Tensor, "n d"], inducing: Float[Tensor, "m d"]) -> "Projection":
        """Project rows onto inducing points."""
        kzz = covariance(hyper, inducing, inducing)
        chol = try_cholesky(kzz + INFERENCE.jitter * hyper.variance[:, None, None] * eye(len(inducing)))
        if chol is None:
            raise FitError(
                "the prior covariance is singular: expected finite inputs and hyperparameters; check the traces"
            )
        w = lower_solve(chol, covariance(hyper, inducing, inputs))
        return cls(hyper, chol, w, (hyper.variance[:, None] - w.square().sum(1)).clamp_min(0.0))

    def detach(self) -> "Projection":
        """The same numbers without their gradients."""
        hyper = self.hyper.with_free(self.hyper.free().detach())
        return Projection(hyper, self.chol.detach(), self.w.detach(), self.slack.detach())


@dataclass(frozen=True, slots=True, eq=False)
class RowPosterior:
    """q(h) for some sites.

    Args:
        mean, variance: of h, per latent and row.
        kl: divergence of q from the prior.
        chol_b, whitened: q(v) = N(B^-1 b, B^-1) as the Cholesky factor L_B of B, and L_B^-1 b.
    """

    mean: Float[Tensor, "p n"]
    variance: Float[Tensor, "p n"]
    kl: Float[Tensor, ""]
    chol_b: Float[Tensor, "p m m"]
    whitened: Float[Tensor, "p m"]

    @classmethod
    def of(cls, prior: Projection, sites: Sites) -> "RowPosterior | None":
        """None if the sites are so negative that q is not a distribution.

        With d = 1 + nu b and centred sites a' = a - b mean, integrating xi out leaves sites a'/d, b/d on W'v.
        """
        mean, nugget = prior.hyper.mean[:, None], prior.hyper.nugget[:, None]
        a, b = sites.a - sites.b * mean, sites.b
        d = 1 + nugget * b
        if not bool((d > 0).all()):
            return None
        precision = eye(prior.w.shape[1]) + (prior.w * (b / d)[:, None, :]) @ prior.w.mT
        chol_b = try_cholesky(precision)
        if chol_b is None:
            return None
        right = lower_solve(chol_b, prior.w)
        whitened = (right @ (a / d)[..., None])[..., 0]
        centred = ((right.mT @ whitened[..., None])[..., 0] + nugget * a) / d
        variance = nugget / d + right.square().sum(1) / d.square()
        log_det = torch.log(torch.diagonal(chol_b, dim1=-2, dim2=-1)).sum()
        log_z = 0.5 * (nugget * a.square() / d - torch.log(d)).sum() - log_det + 0.5 * whitened.square().sum()
        kl = (a * centred - 0.5 * b * (centred.square() + variance)).sum() - log_z
        return cls(mean + centred, variance + prior.slack, kl, chol_b, whitened)


def solve_sites(
    prior: Projection,
    sites: Sites,
    likelihood: ExpectedLogLikelihood,
    *,
    tolerance: float = INFERENCE.site_tolerance,
    steps: int = INFERENCE.site_steps,
) -> tuple[Sites, float]:
    """The best sites for fixed hyperparameters, and the bound there.

    Args:
        prior: over the rows.
        sites: to start from.
        likelihood: the expected log likelihood.
        tolerance: gain of the bound, per length of a step, at which the search stops.
        steps: most natural-gradient steps.
    """
    with torch.no_grad():
        state = None
        for start in (sites, Sites(sites.a, sites.b.clamp_min(0.0)), Sites.none(*sites.a.shape)):
            sites, state = start, _bound(prior, start, likelihood)
            if state is not None:
                break
        if state is None:
            raise FitError(
                "the bound is not finite at the prior: expected scaled inputs, check the traces for overflow"
            )
        bound, target = state
        rate = 1.0
        for _ in range(steps):
            proposal = sites.towards(target, rate)
            state = _bound(prior, proposal, likelihood)
            if state is None or state[0] < bound - 1e-9 * (1 + abs(bound)):
                rate /= 2
                if rate < INFERENCE.shortest_step:
                    break
                continue
            gain, sites = state[0] - bound, proposal
            bound, target = state
            if gain < tolerance * rate:
                break
            rate = min(1.0, 2 * rate)
    return sites, bound


def _bound(prior: Projection, sites: Sites, likelihood: ExpectedLogLikelihood) -> tuple[float, Sites] | None:
    """The evidence lower bound at these sites, and the sites after a full natural-gradient step."""
    rows = RowPosterior.of(prior, sites)
    if rows is None:
        return None
    mean, variance = rows.mean.detach().requires_grad_(), rows.variance.detach().requires_grad_()
    coupled = len(mean) > 1
    with torch.enable_grad():
        expected = likelihood(mean, variance)
        slope, variance_slope = torch.autograd.grad(expected, (mean, variance), create_graph=coupled)
        hessian = [torch.autograd.grad(g.sum(), mean, retain_graph=True)[0] for g in slope] if coupled else []
    bound = float(expected.detach() - rows.kl)
    if not np.isfinite(bound):
        return None
    slope, b, at = slope.detach(), -2 * variance_slope.detach(), mean.detach()
    if not coupled:
        return bound, Sites(slope + b * at, b)
    return bound, _coupled_target(prior, slope, b, torch.stack(hessian), at)


def _coupled_target(prior: Projection, slope: Tensor, b: Tensor, hessian: Tensor, at: Tensor) -> Sites:
    """Sites of a natural-gradient step whose means are those of a joint Newton step over all latents.

    q has independent latents, but the likelihood couples them row by row (an amplitude with a rate). Steps that ignore
    this take a hundred times as many iterations. Let C be the off-diagonal of the Hessian of E in the means of a row,
    and P = diag(b) - C. The joint step solves for the mean m under the sites exp(a'h - h'Ph / 2); then a_p += (C m)_p.
    """
    p, m, _ = prior.w.shape
    one = eye(p)
    coupling = hessian.permute(2, 0, 1) * (1 - one)
    precision = torch.diag_embed(b.T) - coupling
    nugget = torch.diag_embed(prior.hyper.nugget.expand(b.shape[1], p))
    centred = (slope.T[..., None] + precision @ (at.T - prior.hyper.mean)[..., None])[..., 0]
    thinned = solve(one + precision @ nugget, torch.cat([precision, centred[..., None]], -1))
    weighted = prior.w[:, None] * thinned[..., :p].permute(1, 2, 0)[:, :, None, :]
    gram = (weighted @ prior.w.mT).transpose(1, 2).reshape(p * m, p * m)
    right = (prior.w @ thinned[..., p].T[..., None]).reshape(p * m, 1)
    v = solve(eye(p * m) + gram, right).reshape(p, m, 1)
    signal = (prior.w.mT @ v)[..., 0].T
    effect = nugget @ solve(one + precision @ nugget, (centred[..., None] - precision @ signal[..., None]))
    move = signal + effect[..., 0] + prior.hyper.mean - at.T
    return Sites(slope + b * at + (coupling @ move[..., None])[..., 0].T, b)
