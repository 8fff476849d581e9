"""The best schedule of each task by a quantile of its final value: the optimistic set, and the answers.

x^i = argmax_x q_alpha[y(x, T_d, omega_i)]   (paper, eq. ucbargmax)
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from paceline.model import Normals, TraceModel
from paceline.settings import SearchBudget
from paceline.strategy.future_runs import FutureRuns, climb, final_quantile, search, task_numbers


def best_schedules(
    model: TraceModel,
    alpha: float,
    lengths: Float[Tensor, "intervals"],
    budget: SearchBudget,
    *,
    generator: torch.Generator,
    tasks: "Sequence[str] | None" = None,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    highest: "Float[Tensor, 'tasks'] | None" = None,
) -> Float[Tensor, "tasks intervals"]:
    """x for each task, in the order of `tasks`.

    Args:
        model: a model with tasks.
        alpha: order of the quantile, on the scale of improvement: above 0.5 optimistic, below it careful.
        lengths: of the intervals (`Space.lengths`).
        budget: how hard to search.
        generator: source of randomness.
        tasks: names of the tasks; all of the model, in its order, by default.
        starts: schedules to compare with, such as those that were run.
        highest: the highest rate of each task (`SafeRates.highest`); 1 by default.
    """
    normals = Normals.draw(model.link.latents, budget.draws, len(lengths), generator)
    futures = FutureRuns(model, task_numbers(model, tasks), lengths, normals)
    x, _ = search([futures], final_quantile(alpha), len(lengths), budget, starts=starts, highest=highest)
    pairs = replace(futures, normals=normals.concat(normals.negate()))
    return climb([pairs], alpha, x, budget.gradient_steps, highest)
