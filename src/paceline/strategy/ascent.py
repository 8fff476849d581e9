"""Gradient ascent of several schedules at once. Each ends at the best point it has visited.

Rates of neighbouring intervals can stand in for each other, so a search over one interval at a time stops on a ridge.
Here all rates of a schedule move together.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

ADAM_BETAS = (0.8, 0.95)


def ascend(
    score: Callable[[Float[Tensor, "schedules intervals"]], Float[Tensor, "schedules"]],
    x: Float[Tensor, "schedules intervals"],
    steps: int,
    *,
    step_size: float = 0.05,
    normalise: bool = False,
    highest: "Float[Tensor, 'schedules'] | None" = None,
) -> Float[Tensor, "schedules intervals"]:
    """Move each x up its score inside its box, and return the best point that it has visited.

    Args:
        score: of each schedule, differentiable; no schedule's score depends on another schedule.
        x: the starting points.
        steps: steps of Adam; with 0 every x stays.
        step_size: of Adam: about how far one step goes.
        normalise: follow only the direction of each gradient, if scores differ much in how far they can rise.
        highest: the box of each x is [0, highest] on every interval; [0, 1] by default.
    """
    x = x.detach().clone().requires_grad_()
    top = torch.ones_like(x.detach()) if highest is None else highest[:, None].expand_as(x)
    optimiser = torch.optim.Adam([x], lr=step_size, betas=ADAM_BETAS)
    best, highest = x.detach().clone(), torch.full((len(x),), -torch.inf, dtype=torch.float64)
    for _ in range(steps):
        with torch.enable_grad():
            scores = score(x)
            (gradient,) = torch.autograd.grad(-scores.sum(), x)
        higher = scores.detach() > highest
        best, highest = torch.where(higher[:, None], x.detach(), best), torch.where(higher, scores.detach(), highest)
        length = gradient.square().sum(1, keepdim=True).sqrt().clamp_min(1e-300)
        x.grad = gradient / length if normalise else gradient
        optimiser.step()  # pyright: ignore[reportUnknownMemberType]
        with torch.no_grad():
            x.copy_(torch.minimum(x.clamp_min(0), top))
    return best
