"""How far a run has come: the sum of its rates so far, as one more input of the latent functions.

NARX(q) forgets what happened more than q intervals ago. But at a high rate a trace looks bad because of noise that a
lower rate will anneal, while it gains on directions of low curvature, which move with the summed rate whatever the
noise: of two runs at the same value the one with the larger sum has more to gain from a lower rate. The value and the
sum together tell the two apart.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.traces import Scaling, Segmenter


@dataclass(frozen=True, slots=True)
class SummedRate:
    """S = sum over the intervals so far of rate times share of the run; as an input log10(low + S), scaled.

    Args:
        low, decades: log10 of the lower bound of the rate, and the width of the bounds.
        share: of the whole run that an interval of mean length takes.
    """

    low: float
    decades: float
    share: float

    @classmethod
    def of(cls, segmenter: Segmenter, scaling: Scaling) -> "SummedRate":
        """For runs cut and scaled like this."""
        whole = float(segmenter.clock(np.asarray(segmenter.clock.steps)))
        return cls(float(np.log10(scaling.lr_range.low)), scaling.lr_range.decades, scaling.interval / whole)

    def after(
        self, rate_sum: Float[Tensor, "..."], x: Float[Tensor, "..."], length: Float[Tensor, ""]
    ) -> Float[Tensor, "..."]:
        """The sum after an interval of some length, in mean intervals, at rate x in [0, 1] of the bounds."""
        return rate_sum + torch.pow(10.0, self.low + self.decades * x) * (length * self.share)

    def unit(self, rate_sum: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The sum as an input, about 0 to 1."""
        return (torch.log10(10.0**self.low + rate_sum) - self.low) / self.decades
