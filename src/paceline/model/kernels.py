"""The covariance of the latent functions: a product of Matern-5/2 kernels, and the hyperparameters they take.

k(z, z') = s^2 k_Y(Y, Y') k_x(x, x') k_w(w, w') k_c(c, c')   (paper, section 4.1; k_w = 1 for a single task)

k_c is over known coordinates of the tasks; it is 1 if there are none.

gpytorch's product kernel takes four times as long at our sizes (docs/design.md), so the kernel is written out here. A
test checks that both are equal.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from paceline.model.settings import PRIORS

SQRT5 = 5.0**0.5


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Hyperparameters of p independent latent functions, and the task embedding that they share.

    Args:
        mean: constant mean of each function.
        log_scale: log of the prior standard deviation.
        log_nugget: log of the standard deviation of the random effect; -inf for none.
        log_lengthscales: log of a lengthscale per function and input.
        embedding: location of each task.
        coordinates: known coordinates of each task, standardised; they are not learnt.
        log_coordinate_lengthscales: log of a lengthscale per coordinate, which the functions share.
    """

    mean: Float[Tensor, "p"]
    log_scale: Float[Tensor, "p"]
    log_nugget: Float[Tensor, "p"]
    log_lengthscales: Float[Tensor, "p inputs"]
    embedding: Float[Tensor, "tasks dims"]
    coordinates: Float[Tensor, "known coordinates"]
    log_coordinate_lengthscales: Float[Tensor, "coordinates"]

    @classmethod
    def start(
        cls,
        means: Float[Tensor, "p"],
        inputs: int,
        *,
        nugget: bool,
        tasks: int = 0,
        dims: int = 0,
        coordinates: "Float[Tensor, 'tasks coordinates'] | None" = None,
    ) -> "Hyperparameters":
        """Where the optimiser starts; the tasks start on a small circle."""
        p = len(means)
        known = torch.zeros(tasks, 0, dtype=torch.float64) if coordinates is None else coordinates
        angle = 2 * torch.pi * (torch.arange(tasks, dtype=torch.float64) + 0.3) / max(tasks, 1)
        phase = torch.pi * torch.arange(dims, dtype=torch.float64) / max(dims, 1)
        return cls(
            mean=means.clone(),
            log_scale=torch.full((p,), PRIORS.scale_start, dtype=torch.float64),
            log_nugget=torch.full((p,), PRIORS.nugget_start if nugget else -torch.inf, dtype=torch.float64),
            log_lengthscales=torch.full((p, inputs), PRIORS.lengthscale_start, dtype=torch.float64),
            embedding=embedding_prior(known)[1] * PRIORS.embedding_start * torch.cos(angle[:, None] + phase),
            coordinates=known,
            log_coordinate_lengthscales=torch.full(
                (known.shape[1],), PRIORS.log_coordinate_lengthscale[0], dtype=torch.float64
            ),
        )

    def free(self) -> Tensor:
        """The numbers that the optimiser changes, as one vector."""
        return torch.cat([getattr(self, f.name).reshape(-1) for f in fields(self) if self._is_free(f.name)])

    def with_free(self, vector: Tensor) -> "Hyperparameters":
        """The hyperparameters with these free numbers; differentiable in `vector`."""
        parts: dict[str, Tensor] = {}
        for name in (f.name for f in fields(self) if self._is_free(f.name)):
            old: Tensor = getattr(self, name)
            parts[name], vector = vector[: old.numel()].reshape(old.shape), vector[old.numel() :]
        return replace(self, **parts)

    def _is_free(self, name: str) -> bool:
        return name != "coordinates" and (name != "log_nugget" or bool(torch.isfinite(self.log_nugget).all()))

    @property
    def nugget(self) -> Float[Tensor, "p"]:
        """Variance of the random effect that each interval adds to a latent function."""
        return torch.exp(2 * self.log_nugget)

    @property
    def variance(self) -> Float[Tensor, "p"]:
        """Prior variance of the latent functions."""
        return torch.exp(2 * self.log_scale)


def covariance(
    hyper: Hyperparameters, a: Float[Tensor, "*b n d"], b: Float[Tensor, "*b m d"]
) -> Float[Tensor, "p *b n m"]:
    """k(a_i, b_j) for each latent function. With tasks, the last input is the task's number.

    Matern-5/2 in one input: (1 + r + r^2 / 3) exp(-r), r = sqrt(5) |a - b| / lengthscale.
    """
    batch = (1,) * a.ndim
    inputs = hyper.log_lengthscales.shape[1]
    inverse = SQRT5 * torch.exp(-hyper.log_lengthscales)
    polynomial, exponent = hyper.variance.reshape(-1, *batch), torch.zeros((), dtype=a.dtype)
    for d in range(inputs):
        gap = (a[..., :, None, d] - b[..., None, :, d]).abs()
        r = gap * inverse[:, d].reshape(-1, *batch)
        polynomial = polynomial * (1 + r + r.square() / 3)
        exponent = exponent - r
    k = polynomial * torch.exp(exponent)
    if hyper.embedding.shape[0] == 0:
        return k
    # There are few tasks and many inputs, so k_w k_c is computed per pair of tasks and looked up.
    return k * between_tasks(hyper)[a[..., inputs].long()[..., :, None], b[..., inputs].long()[..., None, :]]


class _CovarianceWith(torch.autograd.Function):
    """k(a_i, b_j) and its derivative in a alone, computed in place: draws spend most of their time here.

    With u = sqrt(5) (a - b) / lengthscale and r = |u|, d/da log k = -u (1 + r) / (3 + 3 r + r^2) sqrt(5) / lengthscale.
    """

    @staticmethod
    def forward(ctx: Any, hyper: Hyperparameters, a: Tensor, b: Tensor) -> Tensor:  # pyright: ignore
        inputs = hyper.log_lengthscales.shape[1]
        inverse = (SQRT5 * torch.exp(-hyper.log_lengthscales)).tolist()
        with_tasks = between_tasks(hyper)[:, b[:, inputs].long()] if len(hyper.embedding) else None
        gaps = [(a[:, d, None] - b[:, d]).abs_() for d in range(inputs)]
        k = torch.empty(len(hyper.mean), len(a), len(b), dtype=a.dtype)
        for variance, scales, polynomial in zip(hyper.variance, inverse, k, strict=True):
            exponent = gaps[0] * -scales[0]
            torch.addcmul(exponent.neg(), exponent, exponent, value=1 / 3, out=polynomial).add_(1)
            for gap, scale in zip(gaps[1:], scales[1:], strict=True):
                r = gap * -scale
                exponent.add_(r)
                polynomial.mul_(torch.addcmul(1 - r, r, r, value=1 / 3))
            polynomial.mul_(exponent.exp_())
            polynomial.mul_(variance if with_tasks is None else (variance * with_tasks)[a[:, inputs].long()])
        if ctx.needs_input_grad[1]:
            ctx.save_for_backward(a, b, k)
            ctx.inverse = inverse
        return k

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:  # pyright: ignore
        a, b, k = ctx.saved_tensors
        weights = gradients[0] * k
        gradient = torch.zeros_like(a)
        for d in range(len(ctx.inverse[0])):
            gap = a[:, d, None] - b[:, d]
            for weight, scales in zip(weights, ctx.inverse, strict=True):
                u = gap * scales[d]
                r = u.abs()
                slope = u.mul_(r + 1).div_(torch.addcmul(3 * r, r, r).add_(3))
                gradient[:, d] -= scales[d] * (weight * slope).sum(1)
        return None, gradient, None


def fast_covariance(hyper: Hyperparameters, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "p n m"]:
    """`covariance` in half the time, for many points a and few b; differentiable once, in a alone."""
    return _CovarianceWith.apply(hyper, a, b)  # pyright: ignore


def between_tasks(hyper: Hyperparameters) -> Float[Tensor, "tasks tasks"]:
    """k_w k_c between tasks. Without dimensions of w, it is 1 within a task and 0 between tasks."""
    w = hyper.embedding
    if w.shape[1] == 0:
        return torch.eye(len(w), dtype=w.dtype)
    r = SQRT5 * ((w[:, None] - w[None]).square().sum(-1) + 1e-24).sqrt()
    k = (1 + r + r.square() / 3) * torch.exp(-r)
    for c, log_lengthscale in zip(hyper.coordinates.T, hyper.log_coordinate_lengthscales, strict=True):
        r = SQRT5 * torch.exp(-log_lengthscale) * (c[:, None] - c).abs()
        k = k * (1 + r + r.square() / 3) * torch.exp(-r)
    return k


def embedding_prior(coordinates: Float[Tensor, "tasks coordinates"]) -> tuple[float, float]:
    """Mean and deviation of the prior of locations: narrower if coordinates say in what the tasks differ."""
    return PRIORS.embedding if coordinates.shape[1] == 0 else PRIORS.embedding_with_coordinates


def log_prior(hyper: Hyperparameters, centre: Float[Tensor, "p"]) -> Float[Tensor, ""]:
    """Log density of the hyperparameters, up to a constant; see `HyperparameterPriors`.

    The priors are weak: lognormal on scales, lengthscales and nugget, normal on the mean and on the embedding.
    """

    def normal(x: Tensor, mean: "float | Tensor", deviation: float) -> Tensor:
        return -0.5 * ((x - mean) / deviation).square().sum()

    total = normal(hyper.mean, centre, PRIORS.mean_deviation) + normal(hyper.log_scale, *PRIORS.log_scale)
    total = total + normal(hyper.log_lengthscales, *PRIORS.log_lengthscale)
    total = total + normal(hyper.embedding, *embedding_prior(hyper.coordinates))
    total = total + normal(hyper.log_coordinate_lengthscales, *PRIORS.log_coordinate_lengthscale)
    if torch.isfinite(hyper.log_nugget).all():
        total = total + normal(hyper.log_nugget, *PRIORS.log_nugget)
    return total
