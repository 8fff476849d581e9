"""The Gaussian likelihood of traces, reduced to a few numbers per interval.

An interval has n observations after its first one, the anchor: r_j = eta(f, t_j) + e_j - e_0. The anchor is an
observation too. Its error e_0 is shared by the whole interval, so cov(r) = s^2 (I + 11'). With
S_ab' = S_ab - S_a S_b / (n + 1),

E SSE = S_rr' - 2 E[phi(f_1)] E[A(f_2)] + E[phi(f_1)^2] E[B(f_2)]

with A = S_rg', B = S_gg' and g_j = curve(f_2, t_j). If the curve is linear in time, A and B are sums that the interval
already has. Otherwise they are tabulated over f_2, once per interval. The noise is profiled: s^2 = sum of E SSE / N
over all intervals, or over those of one task if tasks share nothing.
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
from paceline.model.settings import INFERENCE
from paceline.traces import Scaling, Segment

# The table of A and B: f_2 from -10 to 20. Interpolation in it has a relative error below 1e-6 (docs/design.md).
GRID_LOW, GRID_STEP, GRID_SIZE = -10.0, 0.125, 241
AMPLITUDE_NODES, CURVE_NODES = 20, 8  # of Gauss-Hermite quadrature, over f_1 and over f_2
PER_INTERVAL = ("counts", "square", "cross", "gram", "group")
# Six values at -2.5, -1.5, ..., 2.5 -> coefficients of the polynomial through them.
INTERPOLATION = solve(tensor(np.vander(np.arange(6) - 2.5, increasing=True)), eye(6))
CHUNK = 20_000  # observations that are tabulated at once: this bounds the memory
# The first guess of f_2: it balances fit and a prior N(0.5, 2^2), because few observations do not determine a curve.
GUESS_CENTRE, GUESS_PRECISION = 0.5, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class TraceLikelihood:
    """Expected log likelihood of intervals whose latent values are Gaussian.

    Args:
        link: eta.
        counts: observations per interval.
        square: S_rr' per interval.
        cross: A per interval, over the grid of f_2 if the link has one.
        gram: B, likewise.
        anchor_noise: whether the error of the anchor is marginalised; else it is zero.
        group: number of the noise of each interval.
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
        z, w = hermite(CURVE_NODES)
        cross, gram = self._at(mean[1, :, None] + variance[1, :, None].sqrt() * z) @ w
        return self.square - 2 * first * cross + second * gram

    def noise(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, ""]:
        """The noise variance s^2 that maximises the expected log likelihood of all intervals, at least the floor."""
        return (self.expected_sse(mean, variance).sum() / self.counts.sum()).clamp_min(INFERENCE.noise_floor)

    def noises(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, "groups"]:
        """The same for each group of intervals; an empty group has the noise of all intervals."""
        sse, counts = self._by_group(self.expected_sse(mean, variance)), self._by_group(self.counts)
        return torch.where(counts > 0, self._best_noise(sse, counts), self._best_noise(sse.sum(), counts.sum()))

    def _best_noise(self, sse: Float[Tensor, "*groups"], counts: Float[Tensor, "*groups"]) -> Float[Tensor, "*groups"]:
        return (sse / counts.clamp_min(1.0)).clamp_min(INFERENCE.noise_floor)

    def _by_group(self, rows: Float[Tensor, "n"]) -> Float[Tensor, "groups"]:
        return zeros(self.groups).index_add(0, self.group, rows) if self.groups > 1 else rows.sum()[None]

    def __call__(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, ""]:
        """Sum over intervals of E log p(r | f), at the best noise."""
        sse, total = self._by_group(self.expected_sse(mean, variance)), self._by_group(self.counts)
        noise = self._best_noise(sse.detach(), total)  # detached: its gradient is zero, or it is at the floor
        log_det = torch.log1p(self.counts).sum() if self.anchor_noise else 0.0
        return -0.5 * ((total * torch.log(2 * torch.pi * noise) + sse / noise).sum() + log_det)

    def least_squares(self) -> Float[Tensor, "p n"]:
        """Latent values that fit each interval alone: the start of the first fit."""
        best = self.cross / self.gram.clamp_min(1e-300)
        if not self.link.signed:
            best = best.clamp_min(0.0)
        grid = torch.arange(self.cross.shape[1], dtype=torch.float64) * GRID_STEP + GRID_LOW
        misfit = (self.square[:, None] - 2 * best * self.cross + best.square() * self.gram).clamp_min(1e-12)
        prior = 0.5 * GUESS_PRECISION * (grid - GUESS_CENTRE).square()
        score = 0.5 * self.counts[:, None] * torch.log(misfit) + prior
        at = score.argmin(1, keepdim=True) if self.link.latents == 2 else torch.zeros(len(best), 1, dtype=torch.long)
        amplitude = best.gather(1, at)[:, 0]
        if not self.link.signed:
            positive = amplitude[amplitude > 0]
            typical = positive.median() if len(positive) else torch.tensor(1e-2, dtype=torch.float64)
            amplitude = self.link.inverse_amplitude(amplitude.clamp_min(max(1e-2 * float(typical), 1e-6)))
        return torch.stack([amplitude, grid[at[:, 0]]][: self.link.latents])

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


def _tabulate(segments: Sequence[Segment], link: Link, scaling: Scaling) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of g, r g and g^2 over each interval, for every f_2 of the grid; one column if the link has no f_2."""
    size = GRID_SIZE if link.latents == 2 else 1
    grid = torch.arange(size, dtype=torch.float64)[:, None] * GRID_STEP + GRID_LOW
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
