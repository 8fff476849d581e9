"""The state of a run under its schedule: the summed rate S, and the noise that a lower rate would anneal.

With v = (lr / reference)^g, per step,

S <- S + lr,   N_i <- v + (N_i - v) exp(-l_i lr),   i = 1..5, and N_6 = v at once.

S is the clock on which training makes progress. The modes N_i distinguish a run just after a drop of its rate from one
long after it, at the same loss and rate. N is linear in v, so on a schedule of constant pieces k

N_i(t) = sum_k v_k (1 - exp(-l_i dS_k)) exp(-l_i (S(t) - S_k)).

This needs no loop, works for many exponents g at once, and is differentiable in the rates.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.law.settings import FORM, ROWS
from paceline.model.linalg import tensor
from paceline.traces import Schedule

SPEEDS = np.geomspace(FORM.slowest, FORM.fastest, FORM.modes)  # l_i, in units of one over the largest S of the fit


@dataclass(frozen=True, slots=True, eq=False)
class SchedulePieces:
    """A schedule as constant pieces, up to each of some steps.

    Args:
        rates: rate of each piece.
        lengths: length of each piece, in steps.
        counts: how many pieces end at or before each of the steps.
        last_rates: rate of the last update before each of the steps.
    """

    rates: Float[Tensor, "pieces"]
    lengths: Float[Tensor, "pieces"]
    counts: Int[Tensor, "steps"]
    last_rates: Float[Tensor, "steps"]

    @classmethod
    def of(cls, schedule: Schedule, steps: Int[np.ndarray, "steps"]) -> "SchedulePieces":
        """Cut a schedule at these steps (increasing, after 0), at its change points, and finely between."""
        edges = piece_edges(schedule, steps)
        inside = (np.arange(4) + 0.5) / 4
        samples = edges[:-1, None] + np.diff(edges)[:, None] * inside
        rates = np.asarray(schedule(np.floor(samples))).mean(1)
        counts = np.searchsorted(edges, steps)
        return cls(tensor(rates), tensor(np.diff(edges)), torch.as_tensor(counts), tensor(schedule(steps - 1)))

    def rate_sum(self) -> tuple[Float[Tensor, "steps"], Float[Tensor, "pieces"]]:
        """S at the steps, and at the end of each piece."""
        ends = torch.cumsum(self.rates * self.lengths, 0)
        return ends[self.counts - 1], ends

    def noise(self, g: Float[Tensor, "draws"], reference: float, largest: float) -> Float[Tensor, "draws steps modes"]:
        """N_1..N_5 and v at the steps, for each exponent g.

        Args:
            g: exponents.
            reference: the rate at which v = 1.
            largest: the S that scales the speeds.
        """
        at, ends = self.rate_sum()
        v = torch.exp(g[:, None] * torch.log(self.rates / reference))
        speeds = tensor(SPEEDS) / largest
        filled = -torch.expm1(-speeds[:, None] * (self.rates * self.lengths))
        blocks, begin = list[Tensor](), 0
        for first in range(0, len(at), ROWS.block):
            steps = slice(first, first + ROWS.block)
            end = int(self.counts[steps][-1])
            pieces = slice(begin, end)
            gap = at[steps, None] - ends[pieces]
            over = torch.arange(begin, end) < self.counts[steps, None]
            left = torch.exp(-speeds[:, None, None] * gap.clamp_min(0.0)) * over
            block = torch.einsum("dp,msp->dsm", v[:, pieces], left * filled[:, None, pieces])
            if first:  # what is left of the blocks before
                remaining = torch.exp(-speeds * (at[steps, None] - at[first - 1]))
                block = block + blocks[-1][:, -1:] * remaining
            blocks.append(block)
            begin = end
        now = torch.exp(g[:, None] * torch.log(self.last_rates / reference))
        return torch.cat([torch.cat(blocks, 1), now[..., None]], -1)


def piece_edges(schedule: Schedule, steps: Int[np.ndarray, "steps"]) -> Float[np.ndarray, "borders"]:
    """Borders of the pieces: the steps, equal parts between them, and the schedule's change points."""
    parts = max(1, min(4, ROWS.schedule_pieces // len(steps)))
    first = max(2, ROWS.schedule_pieces // 4 if len(steps) < 8 else 33)
    borders = np.concatenate([[0.0], np.asarray(steps, dtype=float)])
    fine: list[np.ndarray] = [
        np.linspace(a, b, (first if a == 0 else parts) + 1)[1:] for a, b in pairwise(borders.tolist())
    ]
    changes = schedule.change_points[(schedule.change_points > 0) & (schedule.change_points < steps[-1])]
    return np.unique(np.concatenate([[0.0], *fine, changes]))
