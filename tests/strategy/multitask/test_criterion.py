"""The criterion against finite differences, plain nested Monte Carlo and its linear approximation."""

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.errors import InputError
from paceline.model import Normals
from paceline.strategy.multitask import Criterion, LinearCriterion
from tests.strategy.multitask.drawn_runs import SPACE, TASKS


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def criterion_of(model: TraceModel, reference: torch.Tensor, outer: int, inner: int = 4, **settings) -> Criterion:
    settings = {"generator": generator(), **settings}
    return Criterion.of(model, reference, SPACE.lengths(model), outer_draws=outer, inner_draws=inner, **settings)


def test_the_gradient_agrees_with_finite_differences(model: TraceModel, reference: torch.Tensor) -> None:
    criterion = criterion_of(model, reference, 6)
    tasks = torch.tensor([0, 2])
    x = torch.tensor([[0.3, 0.6, 0.4, 0.7, 0.2], [0.8, 0.2, 0.5, 0.4, 0.6]]).double().requires_grad_()
    (gradient,) = torch.autograd.grad(criterion(x, tasks).sum(), x)
    scale = float(gradient.abs().max())
    for i in range(2):
        for k in range(5):
            step = torch.zeros(2, 5).double()
            step[i, k] = 1e-5
            up, down = (criterion(x.detach() + sign * step, tasks)[i] for sign in (1, -1))
            assert float(gradient[i, k]) == pytest.approx(float(up - down) / 2e-5, rel=1e-3, abs=1e-4 * scale)


def test_a_run_is_never_expected_to_add_variance(model: TraceModel, reference: torch.Tensor) -> None:
    """Beyond Monte Carlo error, which is measured by repeating the estimate with other normals."""
    x, tasks = torch.rand(12, 5, generator=generator(1)).double(), torch.arange(12) % 3
    with torch.no_grad():
        gains = torch.stack(
            [criterion_of(model, reference, 32, generator=generator(s)).gain(x, tasks) for s in range(4)]
        )
        now = criterion_of(model, reference, 2).current()
    error = gains.std(0) / 2
    assert bool((gains.mean(0) > -3 * error).all())
    assert bool((gains.mean(0) < now + 3 * error).all())


def test_it_is_the_mean_of_conditional_variances(model: TraceModel, reference: torch.Tensor) -> None:
    """The law of total variance, against nested Monte Carlo with fresh normals for every draw of the run."""
    lengths, tasks = SPACE.lengths(model), torch.arange(3)
    x, own = reference[1:2], torch.tensor([1])
    with torch.no_grad():
        fast = criterion_of(model, reference, 300, 16, current_draws=4000)
        p, outer, inner = model.link.latents, 150, 100
        normals = Normals.draw(p, outer, 5, generator(5)).reshape(1, outer)
        informed = model.condition_on(model.draw_batch(x.T[..., None], own[:, None], normals, lengths))
        fresh = Normals.draw(p, outer * 3 * inner, 5, generator(6)).reshape(1, outer, 3, inner)
        final = informed.draw_batch(reference.T[..., None], tasks[:, None], fresh, lengths).values[..., -1]
        slow = final.var(-1).mean((0, 2))
        error = float(slow.std()) / outer**0.5 + 0.05 * float(slow.mean())
        assert float(fast(x, own)[0]) == pytest.approx(float(slow.mean()), abs=4 * error)
        assert float(slow.mean()) < 0.9 * float(fast.current())  # the schedule itself teaches about its own value


def test_the_linear_criterion_ranks_like_the_criterion(model: TraceModel, reference: torch.Tensor) -> None:
    x, tasks = torch.rand(30, 5, generator=generator(2)).double(), torch.arange(30) % 3
    with torch.no_grad():
        gain = criterion_of(model, reference, 32).gain(x, tasks)
        linear = LinearCriterion.of(model, reference, SPACE.lengths(model)).gain(x, tasks)
    assert bool((linear >= 0).all())
    assert np.corrcoef(gain.argsort().argsort(), linear.argsort().argsort())[0, 1] > 0.8


def test_tasks_are_numbered_as_they_are_named(small_model: TraceModel) -> None:
    """Whatever order the model has them in."""
    x, reference = torch.rand(2, 5, generator=generator(1)).double(), torch.rand(1, 5, generator=generator(2)).double()
    lengths = SPACE.lengths(small_model)
    with torch.no_grad():
        for first, second in (("a", "c"), ("c", "a")):
            both = reference.expand(2, 5)
            linear = LinearCriterion.of(small_model, both, lengths, [first, second])
            own = linear.gain(x, torch.tensor([0, 1]))
            alone = LinearCriterion.of(small_model, both, lengths, ["a", "c"])
            torch.testing.assert_close(own, alone.gain(x, torch.tensor(["ac".index(t) for t in (first, second)])))
            whole = criterion_of(small_model, both, 4, tasks=[first, second])
            assert whole.tasks.tolist() == ["abc".index(t) for t in (first, second)]


def test_draws_come_in_pairs(small_model: TraceModel) -> None:
    with pytest.raises(InputError, match=r"draws come in pairs, .* got 8 and 3: pass even numbers"):
        criterion_of(small_model, torch.zeros(3, 5).double(), 8, 3)


def test_what_a_run_teaches_about_some_tasks_is_their_part_of_the_whole(
    small_model: TraceModel, reference: torch.Tensor
) -> None:
    lengths, x = SPACE.lengths(small_model), torch.rand(2, 5, generator=generator(2)).double()
    tasks = torch.tensor([0, 2])
    whole = LinearCriterion.of(small_model, reference, lengths, TASKS).gain(x, tasks)
    parts = [
        LinearCriterion.of(small_model, reference[[m]], lengths, [task], TASKS).gain(x, tasks)
        for m, task in enumerate(TASKS)
    ]
    torch.testing.assert_close(torch.stack(parts).mean(0), whole)
    one = criterion_of(small_model, reference[[1]], 1000, tasks=["b"], candidate_tasks=TASKS)
    torch.testing.assert_close(one.gain(x, tasks), parts[1], rtol=0.5, atol=0.0)
