"""What the likelihood needs of the curve in each interval: the sums A and B, and what is expected of them.

With the observations r_j = eta(f, t_j) + e_j - e_0 of an interval, g_j = curve(f_2, .., f_p, t_j) and
S_ab' = S_ab - S_a S_b / (n + 1), A = S_rg' and B = S_gg' are functions of the latent values f_2, .., f_p.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.linalg import tensor
from paceline.traces import Scaling, Segment


class ScaledMoments(NamedTuple):
    """How many observations each interval has, and the sums of its residuals r and times t, scaled."""

    n: Float[Tensor, "n"]
    r: Float[Tensor, "n"]
    t: Float[Tensor, "n"]
    rr: Float[Tensor, "n"]
    rt: Float[Tensor, "n"]
    tt: Float[Tensor, "n"]

    @classmethod
    def of(cls, segments: Sequence[Segment], scaling: Scaling) -> "ScaledMoments":
        """Of these intervals."""
        sums = np.array(
            [(s.moments.n, s.moments.r, s.moments.t, s.moments.rr, s.moments.rt, s.moments.tt) for s in segments]
        )
        units = scaling.scale ** np.array([0, 1, 0, 2, 1, 0]) * scaling.interval ** np.array([0, 0, 1, 0, 1, 2])
        return cls(*tensor(sums.reshape(-1, 6) / units).unbind(-1))


Sums = TypeVar("Sums", bound="CurveSums")


@dataclass(frozen=True, slots=True, eq=False)
class CurveSums(ABC):
    """A and B of each interval, as functions of the latent values of the curve.

    A subclass names its tensors whose rows are the intervals in `per_interval`.
    """

    per_interval: ClassVar[tuple[str, ...]]

    def rows(self: Sums, index: Int[Tensor, "k"]) -> Sums:
        """Of some of the intervals."""
        return replace(self, **{name: getattr(self, name)[index] for name in self.per_interval})

    def concat(self: Sums, other: Sums) -> Sums:
        """Of the intervals of both."""
        parts = {name: torch.cat([getattr(self, name), getattr(other, name)]) for name in self.per_interval}
        return replace(self, **parts)

    @abstractmethod
    def expected(
        self, mean: Float[Tensor, "s n"], variance: Float[Tensor, "s n"]
    ) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
        """E A and E B, f_2, .., f_p independent and Gaussian; can be differentiated twice in the means."""

    @abstractmethod
    def candidates(self) -> tuple[Float[Tensor, "s tried"], Float[Tensor, "n tried"], Float[Tensor, "n tried"]]:
        """Latent values of the curve all over their range, with A and B of each interval there."""
