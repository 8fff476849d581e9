"""Gradient ascent of several schedules at once, each judged by the best place it has been.

Rates of neighbouring intervals can stand in for each other, and searches over one interval at a time stop on such
ridges: all rates of a schedule move together.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def ascend(
    score: Callable[[Float[Tensor, "schedules intervals"]], Float[Tensor, "schedules"]],
    x: Float[Tensor, "schedules intervals"],
    moves: int,
    *,
    rate: float = 0.05,
    directions: bool = False,
) -> Float[Tensor, "schedules intervals"]:
    """Each x moved up its score inside [0, 1]: the best place it has been.

    Args:
        score: of each schedule, differentiable; no schedule's score depends on another schedule.
        x: where to begin.
        moves: steps of Adam; 0 stays.
        rate: of Adam: about how far a step goes.
        directions: whether only directions of the gradients count, where scores differ much in how far they can rise.
    """
    x = x.detach().clone().requires_grad_()
    optimiser = torch.optim.Adam([x], lr=rate, betas=(0.8, 0.95))
    best, highest = x.detach().clone(), torch.full((len(x),), -torch.inf, dtype=torch.float64)
    for _ in range(moves):
        with torch.enable_grad():
            scores = score(x)
            (gradient,) = torch.autograd.grad(-scores.sum(), x)
        higher = scores.detach() > highest
        best, highest = torch.where(higher[:, None], x.detach(), best), torch.where(higher, scores.detach(), highest)
        length = gradient.square().sum(1, keepdim=True).sqrt().clamp_min(1e-300)
        x.grad = gradient / length if directions else gradient
        optimiser.step()  # pyright: ignore[reportUnknownMemberType]
        with torch.no_grad():
            x.clamp_(0, 1)
    return best
