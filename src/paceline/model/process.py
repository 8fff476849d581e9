"""Gaussian processes given their values at some points.

`ConditionedProcess` is a posterior given values of f at further points. Conditioning it again gives another one, which
adds one row to a Cholesky factor. So a trace can be drawn interval by interval, each latent value given those before.
"""

from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.kernels import covariance
from paceline.model.linalg import lower_solve, zeros
from paceline.model.posterior import Posterior
from paceline.model.settings import INFERENCE


@dataclass(frozen=True, slots=True, eq=False)
class PointBlock:
    """Points that were conditioned on together, for a batch of possibilities.

    Sigma is the covariance among the points given all blocks before. A later point z has the row
    chol^-1 Sigma(points, z). Two later points z, z' share row'row' of their covariance through this block. So rows act
    as further features whose values are known.

    Args:
        points: the points.
        features: the posterior's features of each point; a tuple, because joining them for each new point is slow.
        rows: the rows of the points with respect to the blocks before.
        chol: chol chol' = Sigma + noise.
        whitened: chol^-1 (f - mu).
    """

    points: Float[Tensor, "*b c d"]
    features: tuple[Float[Tensor, "p *b m"], ...]
    rows: Float[Tensor, "p *b c e"]
    chol: Float[Tensor, "p *b c c"]
    whitened: Float[Tensor, "p *b c"]

    def cross(
        self,
        posterior: Posterior,
        z: Float[Tensor, "*b n d"],
        explained: Float[Tensor, "p *b n m"],
        row: Float[Tensor, "p *b n e"],
    ) -> Float[Tensor, "p *b n c"]:
        """chol^-1 Sigma(points, z): the rows of n new points, for every possibility."""
        sigma = covariance(posterior.hyper, z, self.points)
        if z.shape[-2] == 1:
            data = torch.stack([(own[..., None, :] * explained).sum(-1) for own in self.features], -1)
        else:
            data = explained @ torch.stack(self.features, -1)
        sigma = sigma - data
        if row.shape[-1]:
            sigma = sigma - row @ self.rows.mT
        return lower_solve(self.chol, sigma.mT).mT


@dataclass(frozen=True, slots=True, eq=False)
class ConditionedProcess:
    """A posterior given values of f at some points, for a batch of possibilities at once.

    A possibility may be split into several (`repeat`). Points from before the split are then held once for all of
    these.

    Args:
        posterior: the posterior without the points.
        batch: shape of the batch of possibilities.
        before: blocks of points whose batches are the first dimensions of this batch.
        block: the block that new points are added to; None if there were none since the last split.
    """

    posterior: Posterior
    batch: tuple[int, ...] = ()
    before: tuple[PointBlock, ...] = ()
    block: PointBlock | None = None

    @property
    def blocks(self) -> tuple[PointBlock, ...]:
        """All blocks, oldest first."""
        return self.before if self.block is None else (*self.before, self.block)

    def repeat(self, count: int) -> "ConditionedProcess":
        """Each possibility `count` times, along a new last batch dimension."""
        return ConditionedProcess(self.posterior, (*self.batch, count), self.blocks)

    def marginal(self, z: Float[Tensor, "*some d"]) -> "PointMarginal":
        """Mean and variance of f(z) given all points; z may lack the first dimensions of the batch."""
        posterior, batch, d = self.posterior, self.batch, z.shape[-1]
        features = posterior.features(z)
        mean = posterior.mean(features)
        prior = posterior.hyper.variance.reshape(-1, *(1,) * len(batch))
        explained = posterior.explained(features)
        variance = posterior.hyper.variance.reshape(-1, *(1,) * (z.ndim - 1)) - (features * explained).sum(-1)
        p, m, free = *features.shape[:: features.ndim - 1], (1,) * (len(batch) + 1 - z.ndim)

        def spread(x: Tensor, *tail: int) -> Tensor:
            return x.reshape(p, *free, *z.shape[:-1], *tail).expand(p, *batch, *tail)

        mean, variance, explained, features = (
            spread(mean),
            spread(variance),
            spread(explained, m),
            spread(features, m),
        )
        z = z.expand(*batch, d)
        row = zeros(p, *batch, 0)
        for block in self.blocks:
            shared = block.points.shape[:-2]
            shape = (*shared, prod(batch[len(shared) :]))
            cross = block.cross(
                posterior, z.reshape(*shape, d), explained.reshape(p, *shape, m), row.reshape(p, *shape, row.shape[-1])
            )
            gain = (cross @ block.whitened[..., None])[..., 0]
            mean, variance = (
                mean + gain.reshape(mean.shape),
                variance - cross.square().sum(-1).reshape(variance.shape),
            )
            row = torch.cat([row, cross.reshape(p, *batch, cross.shape[-1])], -1)
        # Points almost coincide if a trace is flat. Without this floor, rounding errors would grow from row to row.
        return PointMarginal(self, z, features, mean, torch.maximum(variance, INFERENCE.jitter * prior), row)


@dataclass(frozen=True, slots=True, eq=False)
class PointMarginal:
    """f(z) at one new point z: its mean and variance, and what is needed to condition on its value."""

    process: ConditionedProcess
    z: Float[Tensor, "*b d"]
    features: Float[Tensor, "p *b m"]
    mean: Float[Tensor, "p *b"]
    variance: Float[Tensor, "p *b"]
    row: Float[Tensor, "p *b c"]

    def condition_on(
        self, value: Float[Tensor, "p *b"], noise: "Float[Tensor, 'p'] | None" = None
    ) -> ConditionedProcess:
        """The process given f(z) = value, or given value = f(z) + an error of variance `noise`."""
        extra = zeros() if noise is None else noise.reshape(-1, *(1,) * (value.ndim - 1))
        deviation = (self.variance + extra).sqrt()[..., None]
        whitened = (value[..., None] - self.mean[..., None]) / deviation
        process, block = self.process, self.process.block
        point, first = self.z[..., None, :], self.row.shape[-1] - (0 if block is None else block.chol.shape[-1])
        row, inside = self.row[..., None, :first], self.row[..., first:]
        if block is None:
            larger = PointBlock(point, (self.features,), row, deviation[..., None], whitened)
        else:
            bottom = torch.cat([inside, deviation], -1)[..., None, :]
            top = torch.cat([block.chol, zeros(*block.chol.shape[:-1], 1)], -1)
            larger = PointBlock(
                torch.cat([block.points, point], -2),
                (*block.features, self.features),
                torch.cat([block.rows, row], -2),
                torch.cat([top, bottom], -2),
                torch.cat([block.whitened, whitened], -1),
            )
        return ConditionedProcess(process.posterior, process.batch, process.before, larger)
