"""The best schedule for each task on a quantile of its final value: the optimistic set, and the answers.

x^i = argmax_x q_alpha[y(x, T_d, omega_i)]   (paper, eq. ucbargmax)

Found one interval at a time, from x_0 on: first by where each interval ends, then in sweeps on the final value itself,
since what looks best at the end of an interval need not be best at the end of the run. Draws use the same normals for
all schedules.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model import TraceModel
from paceline.model.paths import Normals


def final_quantiles(
    model: TraceModel,
    alpha: float,
    x: Float[Tensor, "schedules intervals"],
    tasks: Int[Tensor, "schedules"],
    lengths: Float[Tensor, "whole"],
    normals: Normals,
) -> Float[Tensor, "schedules"]:
    """q_alpha of the value at the end of x, which may be a beginning of the whole run, scaled; bigger is better."""
    count, draws, d = len(x), len(normals.start), x.shape[1]
    same = Normals(
        normals.latent[:, None, :, :d].expand(-1, count, -1, -1),
        normals.effect[:, None, :, :d].expand(-1, count, -1, -1),
        normals.start.expand(count, draws),
    )
    drawn = model.draw_new(x.T[..., None], tasks[:, None], same, lengths[:d])
    return torch.quantile(drawn.values[..., -1], alpha, dim=-1)


def best_schedules(
    model: TraceModel,
    alpha: float,
    lengths: Float[Tensor, "intervals"],
    *,
    starts: "Float[Tensor, 'starts tasks intervals'] | None" = None,
    draws: int = 128,
    grid: int = 9,
    sweeps: int = 2,
    generator: torch.Generator,
    tasks: "Sequence[int] | None" = None,
) -> Float[Tensor, "tasks intervals"]:
    """x for each task of the model, in their order.

    Args:
        model: a model with tasks.
        alpha: order of the quantile, on the scale of improvement: above 0.5 optimistic, below it careful.
        lengths: of the intervals (`Space.lengths`).
        starts: schedules to compare with, such as those that were run; sweeps begin from the best.
        draws: of each schedule.
        grid: values of x_k that are tried at once; each sweep tries them closer around the best.
        sweeps: over all intervals.
        generator: source of randomness.
        tasks: numbers of the tasks that are asked for; all by default.
    """
    numbers = torch.tensor(range(len(model.frame.tasks)) if tasks is None else tasks)
    d, count = len(lengths), len(numbers)
    rows = torch.arange(count)
    normals = Normals.of(model.link.latents, draws, d, generator)

    def choose(x: Tensor, k: int, values: Tensor, stop: int) -> Tensor:
        """x with the best of `values` (tasks, candidates) in place k, judged by the end of interval `stop` - 1."""
        tried = x[:, None, :stop].repeat(1, values.shape[1], 1)
        tried[:, :, k] = values
        flat = tried.reshape(-1, stop)
        score = final_quantiles(model, alpha, flat, numbers.repeat_interleave(values.shape[1]), lengths, normals)
        best = score.reshape(count, -1).argmax(1)
        return torch.cat([tried[rows, best], x[:, stop:]], 1)

    with torch.no_grad():
        even = torch.linspace(0, 1, grid, dtype=torch.float64).expand(count, grid)
        x = torch.full((count, d), 0.5, dtype=torch.float64)
        for k in range(d):
            x = choose(x, k, even, k + 1)
        known = x[None] if starts is None else torch.cat([x[None], starts])
        flat, owner = known.reshape(-1, d), numbers.repeat(len(known))
        score = final_quantiles(model, alpha, flat, owner, lengths, normals).reshape(-1, count)
        x = known[score.argmax(0), rows]
        reach = 0.5
        for _ in range(sweeps):
            around = reach * torch.linspace(-1, 1, grid, dtype=torch.float64)
            for k in range(d):
                x = choose(x, k, (x[:, k, None] + around).clamp(0, 1), d)
            reach /= 2.5
    return x
