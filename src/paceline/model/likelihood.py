"""The Gaussian likelihood of traces, collapsed to a few numbers per interval.

Over an interval with n observations after its anchor, r_j = eta(f, t_j) + e_j - e_0. The anchor is an observation too;
its error e_0 is shared by the whole interval, so cov(r) = s^2 (I + 11') and, with S_ab' = S_ab - S_a S_b / (n + 1),

E SSE = S_rr' - 2 E[phi(f_1)] E[A(f_2)] + E[phi(f_1)^2] E[B(f_2)]

where A = S_rg', B = S_gg' and g_j = shape(f_2, t_j). For a link without f_2 these are sums that the interval already
holds; otherwise they are tabulated over f_2, once per interval. The noise is profiled: s^2 = sum of E SSE / N, over all
intervals, or over those of a task where tasks share nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.linalg import eye, solve, tensor, zeros
from paceline.model.links import Link
from paceline.model.quadrature import hermite
from paceline.traces import Scaling, Segment

NOISE_FLOOR = 1e-8  # variance, in units of the range of values
GRID_LOW, GRID_STEP, GRID_SIZE = -10.0, 0.125, 241  # f_2 from -10 to 20
AMPLITUDE_NODES, SHAPE_NODES = 20, 8
PER_INTERVAL = ("counts", "square", "cross", "gram", "group")
# six values at -2.5, -1.5, ..., 2.5 -> coefficients of the polynomial through them
INTERPOLATION = solve(tensor(np.vander(np.arange(6) - 2.5, increasing=True)), eye(6))


@dataclass(frozen=True, slots=True, eq=False)
class TraceLikelihood:
    """Expected log likelihood of intervals under Gaussian beliefs about their latent values.

    Args:
        link: eta.
        counts: observations per interval.
        square: S_rr' per interval.
        cross: A per interval, over the grid of f_2 where the link has one.
        gram: B, likewise.
        anchor_noise: whether the anchor's error is marginalised (it is taken as exact otherwise).
        group: which intervals share one noise.
        groups: how many noises there are.
    """

    link: Link
    counts: Float[Tensor, "n"]
    square: Float[Tensor, "n"]
    cross: Float[Tensor, "n grid"]
    gram: Float[Tensor, "n grid"]
    anchor_noise: bool
    group: Int[Tensor, "n"]
    groups: int = 1

    @classmethod
    def of(
        cls,
        segments: Sequence[Segment],
        link: Link,
        scaling: Scaling,
        *,
        anchor_noise: bool = True,
        group: "Sequence[int] | None" = None,
        groups: int = 1,
    ) -> "TraceLikelihood":
        """Statistics of these intervals, scaled; by default they share one noise."""
        sums = np.array(
            [(s.moments.n, s.moments.r, s.moments.t, s.moments.rr, s.moments.rt, s.moments.tt) for s in segments]
        )
        units = scaling.scale ** np.array([0, 1, 0, 2, 1, 0]) * scaling.interval ** np.array([0, 0, 1, 0, 1, 2])
        n, r, t, rr, rt, tt = tensor(sums.reshape(-1, 6) / units).unbind(-1)
        share = 1 / (n + 1) if anchor_noise else torch.zeros_like(n)
        if link.linear_in_time:
            cross, gram = (rt - share * r * t)[:, None], (tt - share * t * t)[:, None]
        else:
            g, rg, gg = _tabulate(segments, link, scaling)
            cross, gram = rg - (share * r)[:, None] * g, gg - share[:, None] * g.square()
        numbers = torch.tensor([0] * len(segments) if group is None else list(group), dtype=torch.long)
        return cls(link, n, rr - share * r * r, cross, gram, anchor_noise, numbers, groups)

    def rows(self, index: Int[Tensor, "k"]) -> "TraceLikelihood":
        """Some of the intervals."""
        return replace(self, **{name: getattr(self, name)[index] for name in PER_INTERVAL})

    def concat(self, other: "TraceLikelihood") -> "TraceLikelihood":
        """The intervals of both."""
        parts = {name: torch.cat([getattr(self, name), getattr(other, name)]) for name in PER_INTERVAL}
        return replace(self, **parts, groups=max(self.groups, other.groups))

    def expected_sse(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, "n"]:
        """E SSE of each interval."""
        z, w = hermite(AMPLITUDE_NODES)
        amplitude = self.link.amplitude(mean[0, :, None] + variance[0, :, None].sqrt() * z)
        first, second = amplitude @ w, amplitude.square() @ w
        if self.link.latents == 1:
            return self.square - 2 * first * self.cross[:, 0] + second * self.gram[:, 0]
        z, w = hermite(SHAPE_NODES)
        cross, gram = self._at(mean[1, :, None] + variance[1, :, None].sqrt() * z) @ w
        return self.square - 2 * first * cross + second * gram

    def noise(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, ""]:
        """Noise variance s^2 that maximises the expected log likelihood, at least the floor; over all intervals."""
        return (self.expected_sse(mean, variance).sum() / self.counts.sum()).clamp_min(NOISE_FLOOR)

    def noises(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, "groups"]:
        """The same for each group of intervals; that of all of them for a group without any."""
        sse, counts = self._by_group(self.expected_sse(mean, variance)), self._by_group(self.counts)
        return torch.where(counts > 0, self._best(sse, counts), self._best(sse.sum(), counts.sum()))

    def _best(self, sse: Float[Tensor, "*groups"], counts: Float[Tensor, "*groups"]) -> Float[Tensor, "*groups"]:
        return (sse / counts.clamp_min(1.0)).clamp_min(NOISE_FLOOR)

    def _by_group(self, rows: Float[Tensor, "n"]) -> Float[Tensor, "groups"]:
        return zeros(self.groups).index_add(0, self.group, rows) if self.groups > 1 else rows.sum()[None]

    def __call__(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, ""]:
        """Sum over intervals of E log p(r | f), at the best noise."""
        sse, total = self._by_group(self.expected_sse(mean, variance)), self._by_group(self.counts)
        noise = self._best(sse.detach(), total)  # its own gradient is zero, or it sits on the floor
        log_det = torch.log1p(self.counts).sum() if self.anchor_noise else 0.0
        return -0.5 * ((total * torch.log(2 * torch.pi * noise) + sse / noise).sum() + log_det)

    def least_squares(self) -> Float[Tensor, "p n"]:
        """Latent values that fit each interval on its own: where the first fit starts."""
        best = self.cross / self.gram.clamp_min(1e-300)
        if not self.link.signed:
            best = best.clamp_min(0.0)
        grid = torch.arange(self.cross.shape[1], dtype=torch.float64) * GRID_STEP + GRID_LOW
        misfit = (self.square[:, None] - 2 * best * self.cross + best.square() * self.gram).clamp_min(1e-12)
        score = 0.5 * self.counts[:, None] * torch.log(misfit) + 0.125 * (grid - 0.5).square()
        at = score.argmin(1, keepdim=True) if self.link.latents == 2 else torch.zeros(len(best), 1, dtype=torch.long)
        amplitude = best.gather(1, at)[:, 0]
        if not self.link.signed:
            positive = amplitude[amplitude > 0]
            typical = positive.median() if len(positive) else torch.tensor(1e-2, dtype=torch.float64)
            amplitude = self.link.inverse_amplitude(amplitude.clamp_min(max(1e-2 * float(typical), 1e-6)))
        return torch.stack([amplitude, grid[at[:, 0]]][: self.link.latents])

    def _at(self, f: Float[Tensor, "n nodes"]) -> Float[Tensor, "2 n nodes"]:
        """A and B at given f_2, by six-point interpolation in their tables (relative error below 1e-6)."""
        position = ((f - GRID_LOW) / GRID_STEP).clamp(0, GRID_SIZE - 1)
        first = (position.detach().floor().long() - 2).clamp(0, GRID_SIZE - 6)
        index = (first[..., None] + torch.arange(6)).flatten(1)
        nearby = torch.stack([self.cross.gather(1, index), self.gram.gather(1, index)])
        coefficients = nearby.reshape(2, *first.shape, 6) @ INTERPOLATION.T
        u, value = position - first - 2.5, coefficients[..., 5]
        for power in range(4, -1, -1):
            value = value * u + coefficients[..., power]
        return value


def _tabulate(segments: Sequence[Segment], link: Link, scaling: Scaling) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of g, r g and g^2 over each interval, for every f_2 of the grid; one column where there is no f_2."""
    size = GRID_SIZE if link.latents == 2 else 1
    grid = torch.arange(size, dtype=torch.float64)[:, None] * GRID_STEP + GRID_LOW
    row = torch.repeat_interleave(torch.tensor([s.moments.n for s in segments]))
    elapsed = tensor(np.concatenate([s.elapsed for s in segments]) / scaling.interval)
    residual = tensor(np.concatenate([s.residuals for s in segments]) / scaling.scale)
    sums = zeros(3, size, len(segments))
    for begin in range(0, len(row), 20_000):
        part = slice(begin, begin + 20_000)
        g = link.curve(grid, elapsed[part]).expand(size, -1)
        for total, term in zip(sums, (g, g * residual[part], g.square()), strict=True):
            total.index_add_(1, row[part], term)
    one, two, three = sums.transpose(1, 2).contiguous()
    return one, two, three
