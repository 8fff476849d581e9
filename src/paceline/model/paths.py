"""Exact joint draws along a trace.

The increment of each interval depends on where the one before ended, so a trace is drawn interval by interval, each
latent value conditioned on those drawn before it (paper, section 2.3). `Conditioned` is a Gaussian process given its
values at some points: conditioning it again gives another, which adds one row to a Cholesky factor. All randomness
comes in as fixed normals, so draws are smooth functions of the schedule and can be differentiated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.kernels import covariance
from paceline.model.linalg import lower_solve, try_cholesky, zeros
from paceline.model.links import Link
from paceline.model.posterior import JITTER, Posterior
from paceline.model.summed_rate import SummedRate


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Points that were conditioned on together, for a batch of possibilities.

    With Sigma the covariance among them given all blocks before, chol chol' = Sigma + noise and whitened =
    chol^-1 (f - mu). A later point z has row = chol^-1 Sigma(points, z), and what it shares with another z' through
    this block is row'row': rows act as further features, of which everything is known.
    """

    points: Float[Tensor, "*b c d"]
    features: tuple[Float[Tensor, "p *b m"], ...]  # apart while the block grows: joining them would copy all of them
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
        """chol^-1 Sigma(points, z): the rows of n points for every possibility."""
        found = covariance(posterior.hyper, z, self.points)
        if z.shape[-2] == 1:
            known = torch.stack([(own[..., None, :] * explained).sum(-1) for own in self.features], -1)
        else:
            known = explained @ torch.stack(self.features, -1)
        found = found - known
        if row.shape[-1]:
            found = found - row @ self.rows.mT
        return lower_solve(self.chol, found.mT).mT


@dataclass(frozen=True, slots=True, eq=False)
class ConditionedProcess:
    """A posterior given values of f at some points, for a batch of possibilities at once.

    Points known before a possibility was split into several (`repeated`) are held once for all of these.

    Args:
        posterior: what is known without the points.
        batch: shape of the batch of possibilities.
        before: blocks of points whose batches are the first dimensions of this one's.
        own: the block that grows, or None where nothing was seen since the last split.
    """

    posterior: Posterior
    batch: tuple[int, ...] = ()
    before: tuple[Block, ...] = ()
    own: Block | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, in the order in which they were seen."""
        return self.before if self.own is None else (*self.before, self.own)

    def repeat(self, count: int) -> "ConditionedProcess":
        """Each possibility `count` times, along a new last batch dimension."""
        return ConditionedProcess(self.posterior, (*self.batch, count), self.blocks)

    def marginal(self, z: Float[Tensor, "*some d"]) -> "PointMarginal":
        """Mean and variance of f(z) given everything so far; z may lack the first dimensions of the batch."""
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
            found = block.cross(
                posterior, z.reshape(*shape, d), explained.reshape(p, *shape, m), row.reshape(p, *shape, row.shape[-1])
            )
            weight = (found @ block.whitened[..., None])[..., 0]
            mean, variance = (
                mean + weight.reshape(mean.shape),
                variance - found.square().sum(-1).reshape(variance.shape),
            )
            row = torch.cat([row, found.reshape(p, *batch, found.shape[-1])], -1)
        # points may all but coincide where a trace is flat; below this floor rounding errors would grow from row to row
        return PointMarginal(self, z, features, mean, torch.maximum(variance, JITTER * prior), row)


@dataclass(frozen=True, slots=True, eq=False)
class PointMarginal:
    """What is believed about f at one new point, and the way to condition on it."""

    process: ConditionedProcess
    z: Float[Tensor, "*b d"]
    features: Float[Tensor, "p *b m"]
    mean: Float[Tensor, "p *b"]
    variance: Float[Tensor, "p *b"]
    row: Float[Tensor, "p *b c"]

    def condition_on(
        self, value: Float[Tensor, "p *b"], noise: "Float[Tensor, 'p'] | None" = None
    ) -> ConditionedProcess:
        """Condition on f(z) = value, or on value = f(z) + an error of variance `noise`."""
        extra = zeros() if noise is None else noise.reshape(-1, *(1,) * (value.ndim - 1))
        deviation = (self.variance + extra).sqrt()[..., None]
        whitened = (value[..., None] - self.mean[..., None]) / deviation
        process, own = self.process, self.process.own
        point, first = self.z[..., None, :], self.row.shape[-1] - (0 if own is None else own.chol.shape[-1])
        row, inside = self.row[..., None, :first], self.row[..., first:]
        if own is None:
            grown = Block(point, (self.features,), row, deviation[..., None], whitened)
        else:
            bottom = torch.cat([inside, deviation], -1)[..., None, :]
            top = torch.cat([own.chol, zeros(*own.chol.shape[:-1], 1)], -1)
            grown = Block(
                torch.cat([own.points, point], -2),
                (*own.features, self.features),
                torch.cat([own.rows, row], -2),
                torch.cat([top, bottom], -2),
                torch.cat([own.whitened, whitened], -1),
            )
        return ConditionedProcess(process.posterior, process.batch, process.before, grown)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Traces drawn from a model, in scaled units.

    Args:
        inputs: z of each interval.
        latents: latent values h = f + random effect of each interval.
        values: Y at the start of the first interval and at the end of each.
    """

    inputs: Float[Tensor, "*draws intervals d"]
    latents: Float[Tensor, "p *draws intervals"]
    values: Float[Tensor, "*draws intervals+1"]

    def __getitem__(self, index: int) -> "Draw":
        """One of the draws."""
        return Draw(self.inputs[index], self.latents[:, index], self.values[index])


@dataclass(frozen=True, slots=True, eq=False)
class Normals:
    """The randomness of a batch of draws: standard normals for latents, for random effects and for where runs start."""

    latent: Float[Tensor, "p *draws intervals"]
    effect: Float[Tensor, "p *draws intervals"]
    start: Float[Tensor, "*draws"]

    @classmethod
    def of(cls, p: int, draws: int, intervals: int, generator: torch.Generator) -> "Normals":
        """Fresh normals."""
        latent, effect = torch.randn(2, p, draws, intervals, dtype=torch.float64, generator=generator)
        return cls(latent, effect, torch.randn(draws, dtype=torch.float64, generator=generator))

    @classmethod
    def none(cls, p: int, intervals: int, *draws: int) -> "Normals":
        """No randomness: the draw is the path of the latents' means."""
        return cls(zeros(p, *draws, intervals), zeros(p, *draws, intervals), zeros(*draws))

    def opposite(self) -> "Normals":
        """Their negatives: as likely."""
        return Normals(-self.latent, -self.effect, -self.start)

    def concat(self, other: "Normals") -> "Normals":
        """The draws of both, along the first of their dimensions."""
        latent, effect = torch.cat([self.latent, other.latent], 1), torch.cat([self.effect, other.effect], 1)
        return Normals(latent, effect, torch.cat([self.start, other.start]))

    def for_each(self, *shape: int) -> "Normals":
        """The same normals for every place of a batch of this shape, which comes first."""
        latent, effect = (
            part.reshape(len(part), *(1,) * len(shape), *part.shape[1:]).expand(-1, *shape, *part.shape[1:])
            for part in (self.latent, self.effect)
        )
        return Normals(latent, effect, self.start.expand(*shape, *self.start.shape))

    def shared(self) -> "Normals":
        """The same normals along a new last dimension of the draws, as long as it may be."""
        return Normals(self.latent[..., None, :], self.effect[..., None, :], self.start[..., None])

    def with_unit_moments(self) -> "Normals":
        """One dimension of draws, turned so that their second moments are exactly one; as they are if too few."""
        p, draws, d = self.latent.shape
        flat = torch.cat([part.transpose(0, 1).reshape(draws, p * d) for part in (self.latent, self.effect)], 1)
        flat = torch.cat([flat, self.start[:, None]], 1)
        chol = try_cholesky(flat.mT @ flat / draws) if draws > flat.shape[1] else None
        if chol is None:
            return self
        white = lower_solve(chol, flat.mT).mT
        latent, effect = (part.reshape(draws, p, d).transpose(0, 1) for part in white[:, :-1].chunk(2, 1))
        return Normals(latent, effect, white[:, -1])

    def reshape(self, *draws: int) -> "Normals":
        """The same normals, the draws in another shape."""
        p, d = self.latent.shape[0], self.latent.shape[-1]
        return Normals(self.latent.reshape(p, *draws, d), self.effect.reshape(p, *draws, d), self.start.reshape(draws))


def latent_input(
    values: Sequence[Tensor],
    rates: Sequence[Tensor],
    order: int,
    task: "int | Tensor | None",
    rate_sum: Tensor | None = None,
) -> Float[Tensor, "*b d"]:
    """z = (Y_k, .., x_k, .., S_k, task), from values and rates newest first; the oldest stands in for missing ones."""
    columns = [known[min(i, len(known) - 1)] for known in (values, rates) for i in range(order)]
    if rate_sum is not None:
        columns.append(rate_sum)
    if task is not None:
        columns.append(task.double() if isinstance(task, Tensor) else torch.tensor(float(task), dtype=torch.float64))
    shape = np.broadcast_shapes(*(tuple(column.shape) for column in columns))
    return torch.stack([column.expand(shape) for column in columns], -1)


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """Where a batch of runs stands, before its next interval.

    Args:
        given: the latent functions; its batch of possibilities is the batch of the runs.
        values: Y_k of each run, then Y_{k-1}, ... as far as they are known; may lack the first dimensions of the batch.
        rates: x_{k-1}, x_{k-2}, ... in [0, 1], likewise.
        summed: S_k, the summed rate so far, likewise.
        summed_rate: how it is scaled, where it is an input.
    """

    process: ConditionedProcess
    values: tuple[Float[Tensor, "..."], ...]
    rates: tuple[Float[Tensor, "..."], ...] = ()
    rate_sum: Float[Tensor, "..."] = field(default_factory=zeros)
    summed_rate: SummedRate | None = None

    def repeat(self, count: int) -> "RunState":
        """Each run `count` times, along a new last batch dimension."""

        def spread(known: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(x[..., None] for x in known)

        return replace(
            self,
            process=self.process.repeat(count),
            values=spread(self.values),
            rates=spread(self.rates),
            rate_sum=self.rate_sum[..., None],
        )

    def advance(
        self,
        link: Link,
        x: Float[Tensor, "..."],
        length: Float[Tensor, ""],
        *,
        order: int,
        task: "int | Int[Tensor, '...'] | None",
        normals: Normals,
        interval: int,
    ) -> tuple["RunState", Float[Tensor, "*b d"], Float[Tensor, "p *b"]]:
        """Draw one interval at rate x: where the runs stand then, and the input and the latent values of the interval.

        The normals are those of this interval; possibilities that come before their draws share them.
        """
        process, rates, summed_rate, rate_sum = self.process, (x, *self.rates), self.summed_rate, self.rate_sum
        across = (-1, *(1,) * (len(process.batch) - normals.start.ndim), *normals.start.shape)
        nugget = process.posterior.hyper.nugget.sqrt().reshape(-1, *(1,) * normals.start.ndim)
        far = None if summed_rate is None else summed_rate.unit(rate_sum)
        look = process.marginal(latent_input(self.values, rates, order, task, far))
        f = look.mean + look.variance.sqrt() * normals.latent[..., interval].reshape(across)
        h = f + (nugget * normals.effect[..., interval]).reshape(across)
        value = self.values[0] + link(h, length)
        if summed_rate is not None:
            rate_sum = summed_rate.after(rate_sum, x, length)
        return RunState(look.condition_on(f), (value, *self.values), rates, rate_sum, summed_rate), look.z, h


def draw_path(
    at: RunState,
    link: Link,
    *,
    unit_lr: Float[Tensor, "intervals *each"],
    lengths: Float[Tensor, "intervals"],
    order: int,
    task: "int | Int[Tensor, '*each'] | None",
    normals: Normals,
) -> Draw:
    """Draw Y_1, ..., Y_d from where runs stand.

    Args:
        at: the runs.
        link: eta.
        unit_lr: x_0, ..., x_{d-1} in [0, 1], for all draws or for each; may require a gradient.
        lengths: T_{k+1} - T_k, scaled.
        order: q of NARX(q).
        task: number of the task, where the model has tasks, for all draws or for each.
        normals: randomness, its draws the last batch dimensions.
    """
    trace, inputs, latents = [at.values[0].expand(at.process.batch)], list[Tensor](), list[Tensor]()
    for k, length in enumerate(lengths):
        at, z, h = at.advance(link, unit_lr[k], length, order=order, task=task, normals=normals, interval=k)
        trace.append(at.values[0])
        inputs.append(z)
        latents.append(h)
    return Draw(torch.stack(inputs, -2), torch.stack(latents, -1), torch.stack(trace, -1))
