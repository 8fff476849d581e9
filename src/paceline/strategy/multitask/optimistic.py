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
from paceline.model.linalg import normal_quantile, zeros
from paceline.model.paths import Normals
from paceline.strategy.ascent import ascend


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
    moves: int = 0,
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
        moves: gradient steps that all intervals take together afterwards.
        generator: source of randomness.
        tasks: numbers of the tasks that are asked for; all by default.
    """
    numbers = torch.tensor(range(len(model.frame.tasks)) if tasks is None else tasks)
    d, count = len(lengths), len(numbers)
    rows = torch.arange(count)
    normals = Normals.of(model.link.latents, draws, d, generator)
    order, shape = model.frame.cutting.order, (count, draws, grid)
    same = normals.for_each(count)
    latent, effect = (part[..., None, :].expand(-1, *shape, d) for part in (same.latent, same.effect))
    alike = Normals(latent, effect, zeros(*shape))

    def sweep(x: Tensor, values: Tensor, *, whole: bool) -> Tensor:
        """x with each place in turn the best of its `values` (tasks, places, tried), by the end of the run or interval.

        What comes before a place is drawn once for all that is tried there.
        """
        at = model.stand(numbers[:, None], same)
        for k in range(d):
            tried, path = values[:, k], at.repeated(grid)
            for j in range(k, d if whole else k + 1):
                rate = tried[:, None] if j == k else x[:, j, None, None]
                path, _, _ = path.advance(
                    model.link, rate, lengths[j], task=numbers[:, None, None], normals=alike, interval=j, order=order
                )
            score = torch.quantile(path.values[0], alpha, dim=1)
            x = x.clone()
            x[:, k] = tried[rows, score.argmax(1)]
            at, _, _ = at.advance(
                model.link, x[:, k, None], lengths[k], task=numbers[:, None], normals=same, interval=k, order=order
            )
        return x

    with torch.no_grad():
        even = torch.linspace(0, 1, grid, dtype=torch.float64).expand(count, d, grid)
        x = sweep(torch.full((count, d), 0.5, dtype=torch.float64), even, whole=False)
        known = x[None] if starts is None else torch.cat([x[None], starts])
        flat, owner = known.reshape(-1, d), numbers.repeat(len(known))
        score = final_quantiles(model, alpha, flat, owner, lengths, normals).reshape(-1, count)
        x = known[score.argmax(0), rows]
        reach = 0.5
        for _ in range(sweeps):
            around = reach * torch.linspace(-1, 1, grid, dtype=torch.float64)
            x = sweep(x, (x[:, :, None] + around).clamp(0, 1), whole=True)
            reach /= 2.5
    return climbed(model, alpha, x, numbers, lengths, normals, moves)


def climbed(
    model: TraceModel,
    alpha: float,
    x: Float[Tensor, "tasks intervals"],
    tasks: Int[Tensor, "tasks"],
    lengths: Float[Tensor, "intervals"],
    normals: Normals,
    moves: int,
) -> Float[Tensor, "tasks intervals"]:
    """Each task's x moved up mean + Phi^-1(alpha) deviations of the final value."""
    order, both = normal_quantile(alpha), normals.joined(normals.opposite()).for_each(len(x))

    def score(x: Float[Tensor, "tasks intervals"]) -> Float[Tensor, "tasks"]:
        final = model.draw_new(x.T[..., None], tasks[:, None], both, lengths).values[..., -1]
        return final.mean(1) + order * final.std(1)

    return ascend(score, x, moves)
