"""How much a run is expected to teach: the variance that is left, once it is made, at the final values that matter.

J = mean_i Var[y(x^i, T_d, omega_i)],   Jbar(x, omega) = mean_i Var[y(x^i, T_d, omega_i) | y_(x, omega)]

(paper, section 4.2: TruVar, with one reference schedule x^i per task). The expectation of Jbar over what the run may
show is a double Monte Carlo loop: draws of the run, and given each of them draws of the reference schedules. All
normals are fixed, so the criterion is a smooth function of x, and candidates are compared under the same luck.

By the law of total variance E Jbar = J - mean_i Var(E[y_i | y_(x, omega)]), and only the last term depends on the
candidate. Every draw of the run meets the same normals of the reference runs, so this term is the main effect of a
two-way layout, and its error is in proportion to it. As a mean of conditional variances the criterion could not rank
the many candidates that teach little (docs/research.md, "A family of tasks").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model import Normals, TraceModel, lower_solve
from paceline.strategy.future_runs import task_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """E Jbar, as a function of a candidate's x and task.

    Args:
        model: a model with tasks; it may be conditioned on one draw of each run that is still under way.
        reference: x^i, one schedule per task.
        lengths: of the intervals (`Space.lengths`).
        candidate_normals: of the candidate's draws.
        reference_normals: of the reference runs, given each of these.
        current_normals: of the reference runs, for J.
        tasks: number in the model of the task of each reference schedule.
        candidate_tasks: number in the model of each task that candidates may be of.
    """

    model: TraceModel
    reference: Float[Tensor, "tasks intervals"]
    lengths: Float[Tensor, "intervals"]
    candidate_normals: Normals
    reference_normals: Normals
    current_normals: Normals
    tasks: Int[Tensor, "tasks"]
    candidate_tasks: Int[Tensor, "candidate_tasks"]

    @classmethod
    def of(
        cls,
        model: TraceModel,
        reference: Float[Tensor, "tasks intervals"],
        lengths: Float[Tensor, "intervals"],
        *,
        outer_draws: int,
        inner_draws: int,
        generator: torch.Generator,
        current_draws: int = 256,
        tasks: "Sequence[str] | None" = None,
        candidate_tasks: "Sequence[str] | None" = None,
    ) -> "Criterion":
        """Fix the normals: `outer_draws` of a candidate, and `inner_draws` of each reference run given each of them.

        Both come in opposite pairs. Those of candidates have unit second moments if there are enough of them, so that
        the effect of a run that acts linearly is exact. An outer draw has 2 p d + 1 normals: p latents with their
        random effects on d intervals, and where the run starts. `tasks` names those of the reference, all by default;
        `candidate_tasks` those of candidates, the same by default.
        """
        if outer_draws < 2 or outer_draws % 2 or inner_draws < 4 or inner_draws % 2:
            raise InputError(
                "draws come in pairs, at least one of candidates and two of reference runs, got "
                f"{outer_draws} and {inner_draws}: pass even numbers"
            )
        p, d, count = model.link.latents, len(lengths), len(reference)
        half = Normals.draw(p, outer_draws // 2, d, generator).with_unit_moments()
        half_given = Normals.draw(p, inner_draws // 2 * count, d, generator).reshape(inner_draws // 2, count)
        current = Normals.draw(p, current_draws * count, d, generator).reshape(current_draws, count)
        return cls(
            model,
            reference,
            lengths,
            half.concat(half.negate()),
            half_given.concat(half_given.negate()),
            current,
            task_numbers(model, tasks),
            task_numbers(model, candidate_tasks or tasks),
        )

    def current(self) -> Float[Tensor, ""]:
        """J."""
        draw = self.model.draw_batch(self.reference.T, self.tasks, self.current_normals, self.lengths)
        return draw.values[..., -1].var(0).mean()

    def gain(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """J - E Jbar of each candidate; differentiable in x. `tasks` are indices of `candidate_tasks`."""
        count, outer = len(x), len(self.candidate_normals.start)
        pairs = len(self.reference_normals.start) // 2
        own = self.candidate_tasks[tasks]
        candidates = self.model.draw_batch(
            x.T[..., None], own[:, None], self.candidate_normals.expand(count), self.lengths
        )
        informed = self.model.condition_on(candidates)
        normals = self.reference_normals.expand(count, outer)
        y = informed.draw_batch(self.reference.T, self.tasks, normals, self.lengths).values[..., -1]
        y = y.reshape(count, outer, 2, pairs, -1).mean(2)  # candidates, outer, pairs, tasks
        expected = y.mean(2)
        # Var(E[y | run]) = Var over runs of the mean over pairs, less what the mean of so few pairs adds to it
        residual = y - y.mean(1, keepdim=True) - (expected - expected.mean(1, keepdim=True))[:, :, None]
        spurious = residual.square().sum((1, 2)) / (outer * (pairs - 1)) / pairs
        return (expected.var(1, correction=0) - spurious).mean(-1)

    def __call__(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """E Jbar of each candidate; differentiable in x."""
        return self.current().detach() - self.gain(x, tasks)


@dataclass(frozen=True, slots=True, eq=False)
class LinearCriterion:
    """What the criterion would be if final values were linear in the latents, around the paths of their means.

    With e the standard normals of a reference run, y = g'e and f = chol e at its points. A candidate's latents have
    covariance b = Cov(f_c, y) with it and L_c L_c' with each other (random effect included), so seeing them takes
    |L_c^-1 b|^2 off the variance. It needs no draws, and finds the starts from which the criterion itself is minimised.
    """

    model: TraceModel
    lengths: Float[Tensor, "intervals"]
    inputs: Float[Tensor, "tasks intervals d"]
    slopes: Float[Tensor, "p tasks intervals"]
    candidate_tasks: Int[Tensor, "candidate_tasks"]

    @classmethod
    def of(
        cls,
        model: TraceModel,
        reference: Float[Tensor, "tasks intervals"],
        lengths: Float[Tensor, "intervals"],
        tasks: "Sequence[str] | None" = None,
        candidate_tasks: "Sequence[str] | None" = None,
    ) -> "LinearCriterion":
        """Linearise around the reference schedules; the other arguments are those of `Criterion.of`."""
        count, d = reference.shape
        zero = Normals.zeros(model.link.latents, d, count)
        e, numbers = zero.latent.requires_grad_(), task_numbers(model, tasks)
        with torch.enable_grad():
            path = model.draw_batch(reference.T, numbers, Normals(e, zero.effect, zero.start), lengths)
            (slopes,) = torch.autograd.grad(path.values[:, -1].sum(), e)
        own = task_numbers(model, candidate_tasks or tasks)
        return cls(model, lengths, path.inputs.detach(), slopes, own)

    def gain(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """How much the mean variance would fall; `tasks` are indices of `candidate_tasks`."""
        count, d, targets = len(x), len(self.lengths), len(self.inputs)
        zero = Normals.zeros(self.model.link.latents, d, count)
        path = self.model.draw_batch(x.T, self.candidate_tasks[tasks], zero, self.lengths)
        nugget = self.model.posterior.hyper.nugget
        candidate, reference = self.model.process.repeat(count), self.model.process.repeat(targets)
        for k in range(d):
            look = reference.marginal(self.inputs[:, k])
            reference = look.condition_on(look.mean)
        reference, covariances = reference.repeat(count), list[Tensor]()
        for k in range(d):
            z = path.inputs[:, k]
            look = candidate.marginal(z)
            candidate = look.condition_on(look.mean, nugget)
            row = reference.marginal(z.expand(targets, *z.shape)).row[..., -d:]
            covariances.append((row * self.slopes[:, :, None]).sum(-1))
        b = torch.stack(covariances, -1)
        assert candidate.block is not None, "it has seen d points"
        chol = candidate.block.chol[:, None].expand(-1, targets, -1, -1, -1)
        whitened = lower_solve(chol, b[..., None])[..., 0]
        return whitened.square().sum((0, -1)).mean(0)
