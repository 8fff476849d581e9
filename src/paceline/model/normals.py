"""Fixed standard normals: the randomness of draws.

Draws are functions of the schedule and of these normals. With the same normals they are smooth in the schedule, so
schedules are compared under the same luck, and draws can be differentiated.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model.linalg import lower_solve, try_cholesky, zeros


@dataclass(frozen=True, slots=True, eq=False)
class Normals:
    """Standard normals of a batch of draws.

    Args:
        latent: for the latent values.
        effect: for the random effects.
        start: for the start values of runs.
    """

    latent: Float[Tensor, "p *draws intervals"]
    effect: Float[Tensor, "p *draws intervals"]
    start: Float[Tensor, "*draws"]

    @classmethod
    def draw(cls, p: int, draws: int, intervals: int, generator: torch.Generator) -> "Normals":
        """New normals."""
        latent, effect = torch.randn(2, p, draws, intervals, dtype=torch.float64, generator=generator)
        return cls(latent, effect, torch.randn(draws, dtype=torch.float64, generator=generator))

    @classmethod
    def zeros(cls, p: int, intervals: int, *draws: int) -> "Normals":
        """No randomness: a draw then follows the means of the latents."""
        return cls(zeros(p, *draws, intervals), zeros(p, *draws, intervals), zeros(*draws))

    def negate(self) -> "Normals":
        """Their negatives, which are as likely."""
        return Normals(-self.latent, -self.effect, -self.start)

    def concat(self, other: "Normals") -> "Normals":
        """The draws of both, along the first dimension of draws."""
        latent, effect = torch.cat([self.latent, other.latent], 1), torch.cat([self.effect, other.effect], 1)
        return Normals(latent, effect, torch.cat([self.start, other.start]))

    def expand(self, *shape: int) -> "Normals":
        """The same normals for every element of a batch of this shape, which comes first."""
        latent, effect = (
            part.reshape(len(part), *(1,) * len(shape), *part.shape[1:]).expand(-1, *shape, *part.shape[1:])
            for part in (self.latent, self.effect)
        )
        return Normals(latent, effect, self.start.expand(*shape, *self.start.shape))

    def unsqueeze(self) -> "Normals":
        """The same normals with a new last dimension of draws, of length one; it broadcasts."""
        return Normals(self.latent[..., None, :], self.effect[..., None, :], self.start[..., None])

    def with_unit_moments(self) -> "Normals":
        """The normals, transformed so that their second moments are exactly one; unchanged if there are too few.

        There must be one dimension of draws.
        """
        p, draws, d = self.latent.shape
        flat = torch.cat([part.transpose(0, 1).reshape(draws, p * d) for part in (self.latent, self.effect)], 1)
        flat = torch.cat([flat, self.start[:, None]], 1)
        chol = try_cholesky(flat.mT @ flat / draws) if draws > flat.shape[1] else None
        if chol is None:
            return self
        white = lower_solve(chol, flat.mT).mT
        latent, effect = (part.reshape(draws, p, d).transpose(0, 1) for part in white[:, :-1].chunk(2, 1))
        return Normals(latent, effect, white[:, -1])

    def reshape(self, *draws: int) -> "Normals":
        """The same normals with the draws in another shape."""
        p, d = self.latent.shape[0], self.latent.shape[-1]
        return Normals(self.latent.reshape(p, *draws, d), self.effect.reshape(p, *draws, d), self.start.reshape(draws))
