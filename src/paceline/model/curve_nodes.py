"""Curves with two or three latent values of their own: A and B by quadrature, over latent values and over time.

Over latent values: a product of Gauss-Hermite rules, at nodes that move with the means. A table would need too many
points. Over time: an interval with many observations is replaced by a few times tau with weights w and c, so that

sum_j g(t_j) = sum_k w_k g(tau_k),   sum_j g(t_j)^2 = sum_k w_k g(tau_k)^2,   sum_j r_j g(t_j) = sum_k c_k g(tau_k)

for polynomials g in sqrt(t) up to some degree: Gauss quadrature for the observations, by Lanczos' method. Curves that
begin steeply are smoother in sqrt(t) than in t.

The slopes of E A and E B in means and variances are those of the quadrature, so that the bound and its gradient agree.
Second derivatives are needed for steps only, and are by Stein's identity: d/dm E g = E[z g] / s. So the curve is
differentiated once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.curve_sums import CurveSums
from paceline.model.linalg import tensor, zeros
from paceline.model.links import Link
from paceline.model.quadrature import product_rule
from paceline.traces import Scaling, Segment

TIMES = 12  # that stand for the observations of an interval
NODES = {2: 8, 3: 6}  # of Gauss-Hermite quadrature, over each of two or three latent values
GUESSES = {2: (-4.0, 8.0, 17), 3: (-4.0, 8.0, 7)}  # from, to and how many: values that the first guess tries for each
CHUNK = 1_000_000  # values of the curve that are computed at once: this bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class CurveNodes(CurveSums):
    """The few times that stand for the observations of each interval.

    Args:
        link: eta.
        times: tau.
        weights: w.
        data: c - S_r w / (n + 1), so that A = sum_k data_k g(tau_k).
        share: 1 / (n + 1), or 0 if the anchor is exact.
    """

    per_interval: ClassVar[tuple[str, ...]] = ("times", "weights", "data", "share")
    link: Link
    times: Float[Tensor, "n times"]
    weights: Float[Tensor, "n times"]
    data: Float[Tensor, "n times"]
    share: Float[Tensor, "n"]

    @classmethod
    def of(cls, segments: Sequence[Segment], link: Link, scaling: Scaling, share: Float[Tensor, "n"]) -> "CurveNodes":
        """Of these intervals."""
        rules = np.array([few_times(s.elapsed / scaling.interval, s.residuals / scaling.scale) for s in segments])
        times, weights, data = tensor(rules.reshape(-1, 3, TIMES)).unbind(1)
        return cls(link, times, weights, data - (share * data.sum(1))[:, None] * weights, share)

    def expected(self, mean: Float[Tensor, "s n"], variance: Float[Tensor, "s n"]) -> tuple[Tensor, Tensor]:
        """E A and E B, as polynomials of second degree around these means and variances."""
        at, deviation = mean.detach(), variance.detach().sqrt()
        with_slopes = torch.is_grad_enabled() and (mean.requires_grad or variance.requires_grad)
        rows = max(1, CHUNK // (NODES[len(mean)] ** len(mean) * TIMES))
        parts = [
            self.rows(torch.arange(i, min(i + rows, at.shape[1])))._moments(
                at[:, i : i + rows], deviation[:, i : i + rows], with_slopes=with_slopes
            )
            for i in range(0, at.shape[1], rows)
        ]
        value, slope, bend, hessian = (torch.cat(part, -1) for part in zip(*parts, strict=True))
        move, widen = mean - at, variance - variance.detach()
        first = (slope * move + bend * widen).sum(1)
        second = 0.5 * (hessian * move[:, None] * move).sum((1, 2))
        cross, gram = value + first + second
        return cross, gram

    def candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """All combinations of some latent values."""
        size = self.link.latents - 1
        grid = torch.cartesian_prod(*[torch.linspace(*GUESSES[size], dtype=torch.float64)] * size).T
        rows = max(1, CHUNK // (grid.shape[1] * TIMES))
        parts = [
            self.rows(torch.arange(i, min(i + rows, len(self.times))))._sums(grid[:, None])
            for i in range(0, len(self.times), rows)
        ]
        cross, gram = torch.cat(parts, 1)
        return grid, cross, gram

    def _moments(
        self, mean: Float[Tensor, "s n"], deviation: Float[Tensor, "s n"], *, with_slopes: bool
    ) -> tuple[Float[Tensor, "2 n"], Float[Tensor, "2 s n"], Float[Tensor, "2 s n"], Float[Tensor, "2 s s n"]]:
        """E A and E B, their slopes in the means and in the variances, and their Hessians in the means."""
        s, n = mean.shape
        z, weight = product_rule(NODES[s], s)
        f = (mean[..., None] + deviation[..., None] * z[:, None]).requires_grad_(with_slopes)
        with torch.set_grad_enabled(with_slopes):
            sums = self._sums(f)
        value = sums.detach() @ weight
        if not with_slopes:
            return value, zeros(2, s, n), zeros(2, s, n), zeros(2, s, s, n)
        each = torch.stack([torch.autograd.grad(part.sum(), f, retain_graph=True)[0] for part in sums]) * weight
        second = (each[:, :, None] * z[:, None]).sum(-1) / deviation  # [., q, r]: E[z_r d/df_q] / s_r
        hessian = (second + second.transpose(1, 2)) / 2
        return value, each.sum(-1), 0.5 * torch.diagonal(second, dim1=1, dim2=2).mT, hessian

    def _sums(self, f: Float[Tensor, "s rows nodes"]) -> Float[Tensor, "2 n nodes"]:
        """A and B at these latent values."""
        g = self.link.curve(f[..., None], self.times[:, None])
        g = g.expand(len(self.times), f.shape[-1], TIMES)
        first = (g @ self.weights[..., None])[..., 0]
        gram = (g.square() @ self.weights[..., None])[..., 0] - self.share[:, None] * first.square()
        return torch.stack([(g @ self.data[..., None])[..., 0], gram])


def few_times(elapsed: Float[np.ndarray, "n"], residuals: Float[np.ndarray, "n"]) -> Float[np.ndarray, "3 times"]:
    """tau, w and c: the observations themselves if they are few enough, with times of weight 0 to fill up."""
    n = len(elapsed)
    if n <= TIMES:
        rest = TIMES - n
        return np.stack(
            [
                np.append(elapsed, np.full(rest, elapsed[-1])),
                np.append(np.ones(n), np.zeros(rest)),
                np.append(residuals, np.zeros(rest)),
            ]
        )
    u = np.sqrt(elapsed)
    basis, diagonal, beside = [np.full(n, n**-0.5)], list[float](), list[float]()
    while True:
        product = u * basis[-1]
        diagonal.append(float(product @ basis[-1]))
        if len(diagonal) == TIMES:
            break
        for _ in range(2):  # twice is enough against rounding errors
            product = product - np.array(basis).T @ (np.array(basis) @ product)
        beside.append(float(np.linalg.norm(product)))
        basis.append(product / beside[-1])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    start = n**0.5 * vectors[0]
    return np.stack([np.square(nodes), np.square(start), (residuals @ np.array(basis).T @ vectors) * start])
