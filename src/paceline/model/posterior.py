"""The one inference engine: sparse variational Gaussian processes held as Gaussian sites.

Each row i (an interval, or a label) sees latent values h_i = f(z_i) + xi_i, f a GP with inducing points Z and xi_i a
random effect of variance nu (the nugget). The posterior is the prior times one Gaussian site per row and latent,

q(h) proportional to p(h) prod_i exp(a_i h_i - b_i h_i^2 / 2),

whose best sites satisfy b = -2 dE/dv, a = dE/dm + b m, with E(m, v) the expected log likelihood that the caller passes
in. Steps towards them are natural-gradient steps; they are halved until the bound rises, and b may be negative. Sites
belong to rows, not to inducing points, so they outlive a change of hyperparameters, of Z, or new rows: every start but
the first is warm. Hyperparameters follow the profiled bound by L-BFGS; at the optimum of the sites its gradient is the
partial one (envelope theorem). Everything is float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import FitError
from paceline.model.kernels import Hyperparameters, covariance, covariance_at, log_prior
from paceline.model.linalg import eigenvectors, eye, few_threads, lower_solve, solve, tensor, try_cholesky, zeros

ExpectedLogLikelihood = Callable[[Float[Tensor, "p n"], Float[Tensor, "p n"]], Float[Tensor, ""]]
JITTER = 1e-6  # relative to the prior variance


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """exp(a h - b h^2 / 2) for each latent and row."""

    a: Float[Tensor, "p n"]
    b: Float[Tensor, "p n"]

    @classmethod
    def none(cls, p: int, n: int) -> "Sites":
        """Sites that say nothing."""
        return cls(zeros(p, n), zeros(p, n))

    @classmethod
    def near(cls, likelihood: ExpectedLogLikelihood, guess: Float[Tensor, "p n"]) -> "Sites":
        """Sites as they would be if the rows' latent values were close to a guess."""
        mean, variance = guess.clone().requires_grad_(), torch.full_like(guess, 0.05**2).requires_grad_()
        slope, to_variance = torch.autograd.grad(likelihood(mean, variance), (mean, variance))
        b = (-2 * to_variance).clamp_min(0.0)
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
    """The prior over rows given hyperparameters: h = mean + W'v + xi, v standard normal, and what Z leaves open.

    W = L^-1 K_ZX with L L' = K_ZZ; slack_i = k(z_i, z_i) - w_i'w_i, which q leaves at its prior.
    """

    hyper: Hyperparameters
    chol: Float[Tensor, "p m m"]
    w: Float[Tensor, "p m n"]
    slack: Float[Tensor, "p n"]

    @classmethod
    def of(cls, hyper: Hyperparameters, inputs: Float[Tensor, "n d"], inducing: Float[Tensor, "m d"]) -> "Projection":
        """Project rows onto inducing points."""
        kzz = covariance(hyper, inducing, inducing)
        chol = try_cholesky(kzz + JITTER * hyper.variance[:, None, None] * eye(len(inducing)))
        if chol is None:
            raise FitError("the prior covariance is singular: expected finite inputs and hyperparameters")
        w = lower_solve(chol, covariance(hyper, inducing, inputs))
        return cls(hyper, chol, w, (hyper.variance[:, None] - w.square().sum(1)).clamp_min(0.0))

    def detached(self) -> "Projection":
        """The same numbers without their history of differentiation."""
        hyper = self.hyper.moved(self.hyper.free().detach())
        return Projection(hyper, self.chol.detach(), self.w.detach(), self.slack.detach())


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """q(h) for given sites: marginals per row, the divergence from the prior, and q(v) = N(B^-1 b, B^-1)."""

    mean: Float[Tensor, "p n"]
    variance: Float[Tensor, "p n"]
    kl: Float[Tensor, ""]
    chol_b: Float[Tensor, "p m m"]
    whitened: Float[Tensor, "p m"]

    @classmethod
    def of(cls, prior: Projection, sites: Sites) -> "Beliefs | None":
        """None where the sites are too negative for q to be a distribution.

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


def _bound(prior: Projection, sites: Sites, likelihood: ExpectedLogLikelihood) -> tuple[float, Sites] | None:
    """The evidence lower bound at these sites, and the sites a full natural-gradient step leads to."""
    beliefs = Beliefs.of(prior, sites)
    if beliefs is None:
        return None
    mean, variance = beliefs.mean.detach().requires_grad_(), beliefs.variance.detach().requires_grad_()
    coupled = len(mean) > 1
    with torch.enable_grad():
        expected = likelihood(mean, variance)
        slope, to_variance = torch.autograd.grad(expected, (mean, variance), create_graph=coupled)
        rows = [torch.autograd.grad(g.sum(), mean, retain_graph=True)[0] for g in slope] if coupled else []
    bound = float(expected.detach() - beliefs.kl)
    if not np.isfinite(bound):
        return None
    slope, b, at = slope.detach(), -2 * to_variance.detach(), mean.detach()
    if not coupled:
        return bound, Sites(slope + b * at, b)
    return bound, _coupled_target(prior, slope, b, torch.stack(rows), at)


def _coupled_target(prior: Projection, slope: Tensor, b: Tensor, hessian: Tensor, at: Tensor) -> Sites:
    """Sites of a natural-gradient step whose means are those of a joint Newton step over all latents.

    q keeps the latents independent, but the likelihood ties them row by row (an amplitude to a rate); steps that
    ignore this converge a hundred times slower. With C the off-diagonal of the Hessian of E in the means of a row and
    P = diag(b) - C, the joint step solves for the mean under the sites exp(a'h - h'Ph / 2); then a_p = a_p + (C m)_p.
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


def solve_sites(
    prior: Projection, sites: Sites, likelihood: ExpectedLogLikelihood, *, tolerance: float = 1e-4, most: int = 100
) -> tuple[Sites, float]:
    """The best sites for fixed hyperparameters, and the bound there."""
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
        for _ in range(most):
            proposal = sites.towards(target, rate)
            state = _bound(prior, proposal, likelihood)
            if state is None or state[0] < bound - 1e-9 * (1 + abs(bound)):
                rate /= 2
                if rate < 1e-4:
                    break
                continue
            gain, sites = state[0] - bound, proposal
            bound, target = state
            if gain < tolerance * rate:
                break
            rate = min(1.0, 2 * rate)
    return sites, bound


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """q(f): a Gaussian process, ready to be asked.

    mu(.) = mean + k_Z(.)' L^-T m,  Sigma(., .) = k(., .) - k_Z' L^-T (I - B^-1) L^-1 k_Z   (paper, eq. qf, whitened)

    On the eigenvectors U of I - B^-1 = U diag(share) U', asking takes one product with a matrix, k_Z' (L^-T U).
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
        """Prepare the predictions that solved sites imply."""
        beliefs = Beliefs.of(prior, sites)
        assert beliefs is not None, "solve_sites returns sites that make a distribution"
        one = eye(prior.w.shape[1])
        inverse_b = lower_solve(beliefs.chol_b, one)
        whitened_mean = (inverse_b.mT @ beliefs.whitened[..., None])[..., 0]
        shrinkage = one - inverse_b.mT @ inverse_b
        share, axes = eigenvectors(shrinkage)
        return cls(
            hyper=prior.hyper,
            inducing=inducing,
            sites=sites,
            bound=bound,
            row_mean=beliefs.mean,
            row_variance=beliefs.variance,
            whitened_mean=whitened_mean,
            shrinkage=shrinkage,
            projection=lower_solve(prior.chol, one).mT @ axes,
            loading=(axes.mT @ whitened_mean[..., None])[..., 0],
            share=share,
        )

    def features(self, z: Float[Tensor, "*b d"]) -> Float[Tensor, "p *b m"]:
        """U' L^-1 k_Z(z)."""
        flat = covariance_at(self.hyper, z.reshape(-1, z.shape[-1]), self.inducing) @ self.projection
        return flat.reshape(-1, *z.shape[:-1], flat.shape[-1])

    def mean(self, features: Float[Tensor, "p *b m"]) -> Float[Tensor, "p *b"]:
        """mu at points with these features."""
        flat = (features.reshape(len(features), -1, features.shape[-1]) @ self.loading[..., None])[
            ..., 0
        ] + self.hyper.mean[:, None]
        return flat.reshape(features.shape[:-1])

    def explained(self, features: Float[Tensor, "p *b m"]) -> Float[Tensor, "p *b m"]:
        """What the data explain: features times the share of their variance that is known.

        Sigma(z, z') = k(z, z') - features(z)' explained(z').
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
    most: int = 60,
    watch: "Callable[[float], None] | None" = None,
) -> Posterior:
    """Fit hyperparameters and sites to the rows.

    Args:
        inputs: one row per interval or label.
        likelihood: E(means, variances), the total expected log likelihood, differentiable in both.
        hyper: hyperparameters to start from; those of an earlier fit make a warm start.
        sites: sites to start from, likewise.
        inducing: which rows are inducing points.
        centre: prior mean of the constant mean.
        most: iterations of L-BFGS; 0 keeps the hyperparameters.
        watch: called with the bound after each evaluation.
    """
    z = inputs[inducing]
    best: tuple[float, Tensor, Sites] = (-np.inf, hyper.free(), sites)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        free = tensor(vector).requires_grad_()
        moved = hyper.moved(free)
        try:
            prior = Projection.of(moved, inputs, z)
        except FitError:
            return 1e10, np.zeros_like(vector)
        solved, bound = solve_sites(prior.detached(), best[2], likelihood)
        beliefs = Beliefs.of(prior, solved)
        assert beliefs is not None
        value = likelihood(beliefs.mean, beliefs.variance) - beliefs.kl + log_prior(moved, centre)
        (gradient,) = torch.autograd.grad(value, free)
        score = float(value.detach())
        if score > best[0]:
            best = (score, free.detach(), solved)
        if watch is not None:
            watch(bound)
        return -score, -gradient.numpy()

    with few_threads(work=len(inputs) * len(z) ** 2):
        if most > 0:
            from scipy.optimize import minimize  # imported when first needed: it takes as long as all of numpy

            start = hyper.free().numpy()
            minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": most, "ftol": 1e-6})
        return solved_posterior(inputs, likelihood, hyper.moved(best[1]), best[2], z)


def solved_posterior(
    inputs: Float[Tensor, "n d"],
    likelihood: ExpectedLogLikelihood,
    hyper: Hyperparameters,
    sites: Sites,
    inducing: Float[Tensor, "m d"],
) -> Posterior:
    """The posterior under these hyperparameters: sites solved, from where they are, and no more."""
    prior = Projection.of(hyper, inputs, inducing)
    solved, bound = solve_sites(prior, sites, likelihood, tolerance=1e-6)
    return Posterior.of(prior, inducing, solved, bound)
