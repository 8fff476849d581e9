"""The best schedule for each task on a quantile of its final value: the optimistic set, and the answers.

x^i = argmax_x q_alpha[y(x, T_d, omega_i)]   (paper, eq. ucbargmax)
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import Normals, TraceModel
from paceline.strategy.prospect import Prospect, climb, quantile, search


def best_schedules(
    model: TraceModel,
    alpha: float,
    lengths: Float[Tensor, "intervals"],
    *,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    draws: int = 128,
    grid: int = 9,
    sweeps: int = 2,
    moves: int = 0,
    generator: torch.Generator,
    tasks: "Sequence[int] | None" = None,
) -> Float[Tensor, "tasks intervals"]:
    """x for each task of the model, in their order.

    Args:
        model: a model with tasks.
        alpha: order of the quantile, on the scale of improvement: above 0.5 optimistic, below it careful.
        lengths: of the intervals (`Space.lengths`).
        starts: schedules to compare with, such as those that were run.
        draws: of each schedule.
        grid: values of x_k that are tried at once (`search`).
        sweeps: over all intervals.
        moves: gradient steps that all intervals take together afterwards.
        generator: source of randomness.
        tasks: numbers of the tasks that are asked for; all by default.
    """
    numbers = torch.tensor(range(len(model.encoder.tasks)) if tasks is None else tasks)
    normals = Normals.of(model.link.latents, draws, len(lengths), generator)
    prospect = Prospect(model, numbers, lengths, normals)
    x, _ = search([prospect], quantile(alpha), len(lengths), grid=grid, sweeps=sweeps, starts=starts)
    return climb([replace(prospect, normals=normals.concat(normals.opposite()))], alpha, x, moves)
