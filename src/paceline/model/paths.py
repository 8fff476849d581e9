"""Exact joint draws along a trace.

The increment of an interval depends on where the one before ended. So a trace is drawn interval by interval, each
latent value given those drawn before it (paper, section 2.3). All randomness comes in as fixed normals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.linalg import zeros
from paceline.model.links import Link
from paceline.model.normals import Normals
from paceline.model.process import ConditionedProcess
from paceline.model.summed_rate import SummedRate


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


def latent_input(
    values: Sequence[Tensor],
    rates: Sequence[Tensor],
    order: int,
    task: "int | Tensor | None",
    rate_sum: Tensor | None = None,
) -> Float[Tensor, "*b d"]:
    """z = (Y_k, .., x_k, .., S_k, task), an input of the latent functions.

    Args:
        values: Y, newest first. If there are fewer than `order`, the oldest is repeated.
        rates: x, likewise.
        order: q of NARX(q).
        task: number of the task, if the model has tasks.
        rate_sum: the summed rate as an input, if the model uses it.
    """
    columns = [column[min(i, len(column) - 1)] for column in (values, rates) for i in range(order)]
    if rate_sum is not None:
        columns.append(rate_sum)
    if task is not None:
        columns.append(task.double() if isinstance(task, Tensor) else torch.tensor(float(task), dtype=torch.float64))
    shape = np.broadcast_shapes(*(tuple(column.shape) for column in columns))
    return torch.stack([column.expand(shape) for column in columns], -1)


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """The state of a batch of runs before their next interval.

    Args:
        process: the latent functions; its batch of possibilities is the batch of the runs.
        values: Y_k of each run, then Y_{k-1}, ... as far as they exist; may lack the first dimensions of the batch.
        rates: x_{k-1}, x_{k-2}, ... in [0, 1], likewise.
        rate_sum: S_k, the summed rate so far, likewise.
        summed_rate: how S_k is scaled, if it is an input.
    """

    process: ConditionedProcess
    values: tuple[Float[Tensor, "..."], ...]
    rates: tuple[Float[Tensor, "..."], ...] = ()
    rate_sum: Float[Tensor, "..."] = field(default_factory=zeros)
    summed_rate: SummedRate | None = None

    def repeat(self, count: int) -> "RunState":
        """Each run `count` times, along a new last batch dimension."""

        def spread(columns: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(x[..., None] for x in columns)

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
        """Draw one interval at rate x.

        The normals are those of this interval. Batch dimensions before their draws share them.

        Returns:
            The state of the runs after the interval, and the interval's input and latent values.
        """
        process, rates, summed_rate, rate_sum = self.process, (x, *self.rates), self.summed_rate, self.rate_sum
        across = (-1, *(1,) * (len(process.batch) - normals.start.ndim), *normals.start.shape)
        nugget = process.posterior.hyper.nugget.sqrt().reshape(-1, *(1,) * normals.start.ndim)
        scaled_sum = None if summed_rate is None else summed_rate.unit(rate_sum)
        marginal = process.marginal(latent_input(self.values, rates, order, task, scaled_sum))
        f = marginal.mean + marginal.variance.sqrt() * normals.latent[..., interval].reshape(across)
        h = f + (nugget * normals.effect[..., interval]).reshape(across)
        value = self.values[0] + link(h, length)
        if summed_rate is not None:
            rate_sum = summed_rate.after(rate_sum, x, length)
        after = RunState(marginal.condition_on(f), (value, *self.values), rates, rate_sum, summed_rate)
        return after, marginal.z, h


def draw_path(
    state: RunState,
    link: Link,
    *,
    unit_lr: Float[Tensor, "intervals *each"],
    lengths: Float[Tensor, "intervals"],
    order: int,
    task: "int | Int[Tensor, '*each'] | None",
    normals: Normals,
) -> Draw:
    """Draw Y_1, ..., Y_d of runs in some state.

    Args:
        state: the runs.
        link: eta.
        unit_lr: x_0, ..., x_{d-1} in [0, 1], for all draws or for each; may require a gradient.
        lengths: T_{k+1} - T_k, scaled.
        order: q of NARX(q).
        task: number of the task, if the model has tasks, for all draws or for each.
        normals: randomness; its draws are the last batch dimensions.
    """
    trace, inputs, latents = [state.values[0].expand(state.process.batch)], list[Tensor](), list[Tensor]()
    for k, length in enumerate(lengths):
        state, z, h = state.advance(link, unit_lr[k], length, order=order, task=task, normals=normals, interval=k)
        trace.append(state.values[0])
        inputs.append(z)
        latents.append(h)
    return Draw(torch.stack(inputs, -2), torch.stack(latents, -1), torch.stack(trace, -1))
