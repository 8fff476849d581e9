"""Links: how far a trace moves in a given time, given the latent values of its interval.

eta(f, t) = amplitude(f_1) * curve(f_2, .., f_p, t)   (paper, section 2.1)

A new learning curve is one class with one method, `curve`. The likelihood uses a link only through its amplitude and
its curve, so fits, quantiles and draws work for every link. Those of Domhan et al. are in `learning_curves`, and
`link_names` finds a link by its name.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus


def inverse_softplus(y: Tensor) -> Tensor:
    """u such that log(1 + e^u) = y, for y > 0."""
    return y + torch.log(-torch.expm1(-y))


class Link(ABC):
    """Increment of a trace after some time, given its p latent values.

    A subclass defines `name` and `curve`. It may also set these class variables:

    - `latents`: p, from 1 (the curve has no latent value of its own) to 4; 2 by default.
    - `signed`: True if the increment may be negative; its amplitude is then f_1 itself.
    - `linear_in_time`: True if curve(f, t) = t. Sums over an interval then need no table.
    """

    name: ClassVar[str]
    latents: ClassVar[int] = 2
    signed: ClassVar[bool] = False
    linear_in_time: ClassVar[bool] = False

    @abstractmethod
    def curve(self, f: Float[Tensor, "..."], elapsed: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Increment at unit amplitude: 0 at elapsed = 0, and increasing.

        Args:
            f: the second latent value, if there are two; f_2, .., f_p along the first dimension, if there are more.
            elapsed: time since the start of the interval, in mean intervals.
        """

    def curve_of(self, f: Float[Tensor, "p *batch"], elapsed: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The curve, given all latent values."""
        return self.curve(f[1:] if self.latents > 2 else f[-1], elapsed)

    def amplitude(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """phi(f_1) = log(1 + e^f_1), so that the trace is monotone; f_1 itself if the link is signed."""
        return f if self.signed else softplus(f)

    def inverse_amplitude(self, a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """f_1 with amplitude(f_1) = a; -inf for a non-positive amplitude of a monotone link."""
        if self.signed:
            return a
        return torch.where(a > 0, inverse_softplus(a.clamp_min(1e-300)), torch.full_like(a, -torch.inf))

    def __call__(self, f: Float[Tensor, "p *batch"], elapsed: Float[Tensor, "..."]) -> Float[Tensor, "*out"]:
        """eta(f, elapsed)."""
        return self.amplitude(f[0]) * self.curve_of(f, elapsed)


class Linear(Link):
    """phi(f_1) t   (paper, eq. lin-link)."""

    name: ClassVar[str] = "linear"
    latents: ClassVar[int] = 1
    linear_in_time: ClassVar[bool] = True

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        return elapsed


class Signed(Linear):
    """f_1 t: for traces that may get worse."""

    name: ClassVar[str] = "signed"
    signed: ClassVar[bool] = True


class Exponential(Link):
    """phi(f_1) (1 - exp(-phi(f_2) t))   (paper, eq. exp-link)."""

    name: ClassVar[str] = "exponential"

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        return -torch.expm1(-softplus(f) * elapsed)


class Power(Link):
    """phi(f_1) (1 - (1 + t)^-phi(f_2)): the power law c - a t^-alpha of Domhan et al., started at t = 0."""

    name: ClassVar[str] = "power"

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        return -torch.expm1(-softplus(f) * torch.log1p(elapsed))


class Hyperbolic(Link):
    """phi(f_1) t phi(f_2) / (1 + t phi(f_2)): the Morgan-Mercer-Flodin (Hill) curve of Domhan et al. at exponent 1."""

    name: ClassVar[str] = "hyperbolic"

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        scaled = softplus(f) * elapsed
        return scaled / (1 + scaled)


class Relaxing(Exponential):
    """f_1 (1 - exp(-phi(f_2) t)): towards a level that may be worse, as after an increase of the rate."""

    name: ClassVar[str] = "relaxing"
    signed: ClassVar[bool] = True
