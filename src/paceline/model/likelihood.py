"""The Gaussian likelihood of traces, reduced to a few numbers per interval.

An interval has n observations after its first one, the anchor: r_j = eta(f, t_j) + e_j - e_0. The anchor is an
observation too. Its error e_0 is shared by the whole interval, so cov(r) = s^2 (I + 11'). With
S_ab' = S_ab - S_a S_b / (n + 1),

E SSE = S_rr' - 2 E[phi(f_1)] E[A(f_2, .., f_p)] + E[phi(f_1)^2] E[B(f_2, .., f_p)]

with A = S_rg', B = S_gg' and g_j = curve(f_2, .., f_p, t_j): see `curve_sums`. The noise is profiled: s^2 = sum of
E SSE / N over all intervals, or over those of one task if tasks share nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.curve_nodes import CurveNodes
from paceline.model.curve_sums import CurveSums, ScaledMoments
from paceline.model.curve_table import CurveTable
from paceline.model.linalg import zeros
from paceline.model.links import Link
from paceline.model.quadrature import hermite
from paceline.model.settings import INFERENCE
from paceline.traces import Scaling, Segment

AMPLITUDE_NODES = 20  # of Gauss-Hermite quadrature over f_1
PER_INTERVAL = ("counts", "square", "group")
# The first guess of f_2, .., f_p: it balances fit and a prior N(0.5, 2^2) of each, because few observations do not
# determine a curve.
GUESS_CENTRE, GUESS_PRECISION = 0.5, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class TraceLikelihood:
    """Expected log likelihood of intervals whose latent values are Gaussian.

    Args:
        link: eta.
        counts: observations per interval.
        square: S_rr' per interval.
        curves: A and B per interval.
        anchor_noise: whether the error of the anchor is marginalised; else it is zero.
        group: number of the noise of each interval.
        groups: how many noises there are.
    """

    link: Link
    counts: Float[Tensor, "n"]
    square: Float[Tensor, "n"]
    curves: CurveSums
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
        moments = ScaledMoments.of(segments, scaling)
        n, r = moments.n, moments.r
        share = 1 / (n + 1) if anchor_noise else torch.zeros_like(n)
        curves = (CurveNodes if link.latents > 2 else CurveTable).of(segments, link, scaling, share)
        numbers = torch.tensor([0] * len(segments) if group is None else list(group), dtype=torch.long)
        return cls(link, n, moments.rr - share * r * r, curves, anchor_noise, numbers, groups)

    def rows(self, index: Int[Tensor, "k"]) -> "TraceLikelihood":
        """Some of the intervals."""
        parts = {name: getattr(self, name)[index] for name in PER_INTERVAL}
        return replace(self, **parts, curves=self.curves.rows(index))

    def concat(self, other: "TraceLikelihood") -> "TraceLikelihood":
        """The intervals of both."""
        parts = {name: torch.cat([getattr(self, name), getattr(other, name)]) for name in PER_INTERVAL}
        curves = self.curves.concat(other.curves)
        return replace(self, **parts, curves=curves, groups=max(self.groups, other.groups))

    def expected_sse(self, mean: Float[Tensor, "p n"], variance: Float[Tensor, "p n"]) -> Float[Tensor, "n"]:
        """E SSE of each interval."""
        z, w = hermite(AMPLITUDE_NODES)
        amplitude = self.link.amplitude(mean[0, :, None] + variance[0, :, None].sqrt() * z)
        first, second = amplitude @ w, amplitude.square() @ w
        cross, gram = self.curves.expected(mean[1:], variance[1:])
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
        latents, cross, gram = self.curves.candidates()
        best = cross / gram.clamp_min(1e-300)
        if not self.link.signed:
            best = best.clamp_min(0.0)
        misfit = (self.square[:, None] - 2 * best * cross + best.square() * gram).clamp_min(1e-12)
        prior = (0.5 * GUESS_PRECISION * (latents - GUESS_CENTRE).square()).sum(0)
        score = 0.5 * self.counts[:, None] * torch.log(misfit) + prior
        at = score.argmin(1)
        amplitude = best.gather(1, at[:, None])[:, 0]
        if not self.link.signed:
            positive = amplitude[amplitude > 0]
            typical = positive.median() if len(positive) else torch.tensor(1e-2, dtype=torch.float64)
            amplitude = self.link.inverse_amplitude(amplitude.clamp_min(max(1e-2 * float(typical), 1e-6)))
        return torch.cat([amplitude[None], latents[:, at]])
