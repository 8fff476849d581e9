"""How much a run would teach: the expected variance, once it is made, of the final values that matter.

J = mean_i Var[y(x^i, T_d, omega_i)],   Jbar(x, omega) = mean_i Var[y(x^i, T_d, omega_i) | y_(x, omega)]

(paper, section 4.2: TruVar, with one reference schedule x^i per task). The expectation of Jbar over what the run may
show is a double Monte Carlo loop: draws of the run, and given each of them draws of the reference schedules. All
normals are fixed, so the criterion is a smooth function of x, and candidates are compared under the same luck.

By the law of total variance E Jbar = J - mean_i Var(E[y_i | y_(x, omega)]), and only the last term depends on the
candidate. Every draw of the run meets the same normals of the reference runs, so that term is the main effect of a
two-way layout: what it is estimated from is what the run changes, and its error is in proportion to it. Estimated as a
mean of conditional variances, most candidates, which teach little, were in no order at all.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model import Normals, TraceModel, lower_solve


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """E Jbar, as a function of a candidate's x and task.

    Args:
        model: a model with tasks; it may be conditioned on one draw of each run that is still under way.
        reference: x^i, one schedule per task.
        lengths: of the intervals (`Space.lengths`).
        outer: normals of the candidate's draws.
        inner: normals of the reference runs given each of these.
        alone: normals of the reference runs, for J.
        tasks: number of the task of each reference schedule.
    """

    model: TraceModel
    reference: Float[Tensor, "tasks intervals"]
    lengths: Float[Tensor, "intervals"]
    outer: Normals
    inner: Normals
    alone: Normals
    tasks: Int[Tensor, "tasks"]

    @classmethod
    def of(
        cls,
        model: TraceModel,
        reference: Float[Tensor, "tasks intervals"],
        lengths: Float[Tensor, "intervals"],
        *,
        outer: int,
        inner: int,
        generator: torch.Generator,
        alone: int = 256,
        tasks: "Int[Tensor, 'tasks'] | None" = None,
    ) -> "Criterion":
        """Fix the normals: so many draws of a candidate, and of each reference run given each of them.

        Both come in opposite pairs, and those of candidates have unit second moments where there are enough of them:
        the effect of a run that acts linearly is then exact. An outer draw has 2 p d + 1 normals: p latents with their
        random effects on d intervals, and where the run starts. `tasks` are those of the reference; all by default.
        """
        if outer < 2 or outer % 2 or inner < 4 or inner % 2:
            raise InputError(
                f"draws come in pairs, at least one of candidates and two of reference runs, got {outer} and {inner}: "
                "pass even numbers"
            )
        p, d, count = model.link.latents, len(lengths), len(reference)
        half = Normals.of(p, outer // 2, d, generator).with_unit_moments()
        given = Normals.of(p, inner // 2 * count, d, generator).reshape(inner // 2, count)
        free = Normals.of(p, alone * count, d, generator).reshape(alone, count)
        numbers = torch.arange(count) if tasks is None else tasks
        outers, inners = half.concat(half.opposite()), given.concat(given.opposite())
        return cls(model, reference, lengths, outers, inners, free, numbers)

    def current(self) -> Float[Tensor, ""]:
        """J."""
        drawn = self.model.draw_new(self.reference.T, self.tasks, self.alone, self.lengths)
        return drawn.values[..., -1].var(0).mean()

    def gain(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """J - E Jbar of each candidate; differentiable in x."""
        count, outer, pairs = len(x), len(self.outer.start), len(self.inner.start) // 2
        drawn = self.model.draw_new(x.T[..., None], tasks[:, None], self.outer.for_each(count), self.lengths)
        known = self.model.condition_on(drawn)
        normals = self.inner.for_each(count, outer)
        y = known.draw_new(self.reference.T, self.tasks, normals, self.lengths).values[..., -1]
        y = y.reshape(count, outer, 2, pairs, -1).mean(2)  # candidates, outer, pairs, tasks
        expected = y.mean(2)
        # Var(E[y | run]) = Var over runs of the mean over pairs, less what the mean of so few pairs adds to it
        left = y - y.mean(1, keepdim=True) - (expected - expected.mean(1, keepdim=True))[:, :, None]
        spurious = left.square().sum((1, 2)) / (outer * (pairs - 1)) / pairs
        return (expected.var(1, correction=0) - spurious).mean(-1)

    def __call__(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """E Jbar of each candidate; differentiable in x."""
        return self.current().detach() - self.gain(x, tasks)


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """What the criterion would be if final values were linear in the latents, around the paths of their means.

    With e the standard normals of a reference run, y = g'e and f = chol e at its points; a candidate's latents have
    covariance b = Cov(f_c, y) with it and L_c L_c' with each other (random effect included), so seeing them takes
    |L_c^-1 b|^2 off the variance. No draws: it finds the starts from which the criterion itself is minimised.
    """

    model: TraceModel
    lengths: Float[Tensor, "intervals"]
    inputs: Float[Tensor, "tasks intervals d"]
    slopes: Float[Tensor, "p tasks intervals"]

    @classmethod
    def of(
        cls,
        model: TraceModel,
        reference: Float[Tensor, "tasks intervals"],
        lengths: Float[Tensor, "intervals"],
        tasks: "Int[Tensor, 'tasks'] | None" = None,
    ) -> "Linearised":
        """Linearise around the reference schedules."""
        count, d = reference.shape
        none = Normals.none(model.link.latents, d, count)
        e = none.latent.requires_grad_()
        with torch.enable_grad():
            numbers = torch.arange(count) if tasks is None else tasks
            drawn = model.draw_new(reference.T, numbers, Normals(e, none.effect, none.start), lengths)
            (slopes,) = torch.autograd.grad(drawn.values[:, -1].sum(), e)
        return cls(model, lengths, drawn.inputs.detach(), slopes)

    def gain(
        self, x: Float[Tensor, "candidates intervals"], tasks: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "candidates"]:
        """How much the mean variance would fall."""
        count, d, targets = len(x), len(self.lengths), len(self.inputs)
        none = Normals.none(self.model.link.latents, d, count)
        drawn = self.model.draw_new(x.T, tasks, none, self.lengths)
        nugget = self.model.posterior.hyper.nugget
        own, theirs = self.model.process.repeat(count), self.model.process.repeat(targets)
        for k in range(d):
            look = theirs.marginal(self.inputs[:, k])
            theirs = look.condition_on(look.mean)
        theirs, covariances = theirs.repeat(count), list[Tensor]()
        for k in range(d):
            z = drawn.inputs[:, k]
            look = own.marginal(z)
            own = look.condition_on(look.mean, nugget)
            row = theirs.marginal(z.expand(targets, *z.shape)).row[..., -d:]
            covariances.append((row * self.slopes[:, :, None]).sum(-1))
        b = torch.stack(covariances, -1)
        assert own.own is not None, "it has seen d points"
        chol = own.own.chol[:, None].expand(-1, targets, -1, -1, -1)
        whitened = lower_solve(chol, b[..., None])[..., 0]
        return whitened.square().sum((0, -1)).mean(0)
