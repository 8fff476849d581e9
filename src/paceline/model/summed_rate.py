"""The sum of a run's rates so far, as one more input of the latent functions.

NARX(q) ignores what happened more than q intervals ago. But a run at a high rate looks bad because of noise, which a
lower rate will anneal, while it makes progress along directions of low curvature. That progress follows the sum of the
rates, whatever the noise. Of two runs at the same value, the one with the larger sum gains more from a lower rate. The
value and the sum together distinguish the two.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.traces import Scaling, Segmenter


@dataclass(frozen=True, slots=True)
class SummedRate:
    """S = sum of rate times share of the run, over the intervals so far; the input is log10(low + S), scaled.

    Args:
        low, decades: log10 of the lower bound of the rate, and width of the bounds.
        share: the share of the run that an interval of mean length takes.
    """

    low: float
    decades: float
    share: float

    @classmethod
    def of(cls, segmenter: Segmenter, scaling: Scaling) -> "SummedRate":
        """For runs that are split and scaled like this."""
        whole = float(segmenter.clock(np.asarray(segmenter.clock.steps)))
        return cls(float(np.log10(scaling.lr_range.low)), scaling.lr_range.decades, scaling.interval / whole)

    def after(
        self, rate_sum: Float[Tensor, "..."], x: Float[Tensor, "..."], length: Float[Tensor, ""]
    ) -> Float[Tensor, "..."]:
        """S after one more interval.

        Args:
            rate_sum: S before it.
            x: its rate, in [0, 1] of the bounds.
            length: its length, in mean intervals.
        """
        return rate_sum + torch.pow(10.0, self.low + self.decades * x) * (length * self.share)

    def unit(self, rate_sum: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """S as an input, about 0 to 1."""
        return (torch.log10(10.0**self.low + rate_sum) - self.low) / self.decades
