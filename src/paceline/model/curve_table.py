"""Curves with at most one latent value of their own: A and B in a table, made once per interval.

If the curve is linear in time, A and B are sums that the interval already has. If it has no latent value, the table has
one column. Otherwise it is over f_2, and is read by interpolation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.curve_sums import CurveSums, ScaledMoments
from paceline.model.linalg import eye, solve, tensor, zeros
from paceline.model.links import Link
from paceline.model.quadrature import hermite
from paceline.traces import Scaling, Segment

# The table: f_2 from -10 to 20. Interpolation in it has a relative error below 1e-6 (docs/design.md).
GRID_LOW, GRID_STEP, GRID_SIZE = -10.0, 0.125, 241
CURVE_NODES = 8  # of Gauss-Hermite quadrature over f_2
# Six values at -2.5, -1.5, ..., 2.5 -> coefficients of the polynomial through them.
INTERPOLATION = solve(tensor(np.vander(np.arange(6) - 2.5, increasing=True)), eye(6))
CHUNK = 20_000  # observations that are tabulated at once: this bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class CurveTable(CurveSums):
    """A and B over a grid of f_2; one column if the curve has no f_2."""

    per_interval: ClassVar[tuple[str, ...]] = ("cross", "gram")
    cross: Float[Tensor, "n grid"]
    gram: Float[Tensor, "n grid"]

    @classmethod
    def of(cls, segments: Sequence[Segment], link: Link, scaling: Scaling, share: Float[Tensor, "n"]) -> "CurveTable":
        """Of these intervals; `share` is 1 / (n + 1), or 0 if the anchor is exact."""
        _, r, t, _, rt, tt = ScaledMoments.of(segments, scaling)
        if link.linear_in_time:
            return cls((rt - share * r * t)[:, None], (tt - share * t * t)[:, None])
        g, rg, gg = _tabulate(segments, link, scaling)
        return cls(rg - (share * r)[:, None] * g, gg - share[:, None] * g.square())

    def expected(self, mean: Float[Tensor, "s n"], variance: Float[Tensor, "s n"]) -> tuple[Tensor, Tensor]:
        """E A and E B."""
        if len(mean) == 0:
            return self.cross[:, 0], self.gram[:, 0]
        z, w = hermite(CURVE_NODES)
        cross, gram = self._at(mean[0, :, None] + variance[0, :, None].sqrt() * z) @ w
        return cross, gram

    def candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """The table."""
        grid = _grid(self.cross.shape[1])
        return (grid[None] if len(grid) > 1 else zeros(0, 1)), self.cross, self.gram

    def _at(self, f: Float[Tensor, "n nodes"]) -> Float[Tensor, "2 n nodes"]:
        """A and B at given f_2, by six-point interpolation in their tables."""
        position = ((f - GRID_LOW) / GRID_STEP).clamp(0, GRID_SIZE - 1)
        first = (position.detach().floor().long() - 2).clamp(0, GRID_SIZE - 6)
        index = (first[..., None] + torch.arange(6)).flatten(1)
        nearby = torch.stack([self.cross.gather(1, index), self.gram.gather(1, index)])
        coefficients = nearby.reshape(2, *first.shape, 6) @ INTERPOLATION.T
        u, value = position - first - 2.5, coefficients[..., 5]
        for power in range(4, -1, -1):
            value = value * u + coefficients[..., power]
        return value


def _grid(size: int) -> Float[Tensor, "grid"]:
    return torch.arange(size, dtype=torch.float64) * GRID_STEP + GRID_LOW


def _tabulate(segments: Sequence[Segment], link: Link, scaling: Scaling) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of g, r g and g^2 over each interval, for every f_2 of the grid; one column if the link has no f_2."""
    size = GRID_SIZE if link.latents == 2 else 1
    grid = _grid(size)[:, None]
    row = torch.repeat_interleave(torch.tensor([s.moments.n for s in segments]))
    elapsed = tensor(np.concatenate([s.elapsed for s in segments]) / scaling.interval)
    residual = tensor(np.concatenate([s.residuals for s in segments]) / scaling.scale)
    sums = zeros(3, size, len(segments))
    for begin in range(0, len(row), CHUNK):
        part = slice(begin, begin + CHUNK)
        g = link.curve(grid, elapsed[part]).expand(size, -1)
        for total, term in zip(sums, (g, g * residual[part], g.square()), strict=True):
            total.index_add_(1, row[part], term)
    one, two, three = sums.transpose(1, 2).contiguous()
    return one, two, three
