"""Where a new task lies: measures on w, its posterior against dense evaluations, and what it shrinks by."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from paceline import Schedule, Trace, TraceModel
from paceline.errors import InputError
from paceline.model.paths import Normals
from paceline.model.preprocess import usable_segments
from paceline.model.task_posterior import NEAREST, Gaussian, Hull, TaskPosterior, measure_of, moved
from paceline.problems import SyntheticFamily

AHEAD = Schedule([1e-2, 3e-3, 2e-2, 1e-3, 5e-3], np.arange(6) * 40)
SHIFTS = {"a": 0.0, "b": 1.0, "c": 2.0}


def runs(task: str, count: int, seed: int = 0, *, shift: float) -> list[Trace]:
    """Runs of one drawn family; tasks differ by a shift of the level at which they run."""
    rng = np.random.default_rng([seed, ord(task[0])])
    family = SyntheticFamily.of("linear", np.random.default_rng(7))
    family = replace(family, means=tuple(mean + shift for mean in family.means))
    return [replace(family.run(rng.uniform(size=5), rng, name=f"{task}{seed}-{i}"), task=task) for i in range(count)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return TraceModel.fit([run for task, shift in SHIFTS.items() for run in runs(task, 4, shift=shift)], tasks=2)


@pytest.fixture(scope="module")
def flat() -> TraceModel:
    """Two tasks on a line."""
    known = [*runs("a", 4, shift=0.0), *runs("c", 4, shift=2.0)]
    return TraceModel.fit(known, tasks=1)


def gaps(model: TraceModel, w: torch.Tensor) -> dict[str, float]:
    return dict(zip(model.encoder.tasks, (model.posterior.hyper.embedding - w).norm(dim=1).tolist(), strict=False))


# measures


def test_a_hull_is_drawn_from_evenly() -> None:
    """Moments of a rectangle that is cut into triangles of different size."""
    corners = torch.tensor([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0], [0.3, 0.5]]).double()
    hull = Hull(corners)
    w = hull.draw(10_000, generator())
    assert bool(((w >= 0) & (w <= torch.tensor([2.0, 1.0]))).all())
    torch.testing.assert_close(hull.log_density(w), torch.full((10_000,), -np.log(2)).double())
    torch.testing.assert_close(w.mean(0), torch.tensor([1.0, 0.5]).double(), atol=0.02, rtol=0)
    torch.testing.assert_close(torch.cov(w.T), torch.diag(torch.tensor([4 / 12, 1 / 12])).double(), atol=0.01, rtol=0)
    outside = torch.tensor([[2.1, 0.5], [-0.1, 0.0], [1.0, 1.01]]).double()
    assert torch.isneginf(hull.log_density(outside)).all()


def test_a_hull_on_a_line_is_an_interval() -> None:
    corners = torch.tensor([[3.0], [-1.0], [0.0]]).double()
    hull = Hull(corners)
    w = hull.draw(4_000, generator())
    assert -1 <= float(w.min()) < -0.9
    assert 2.9 < float(w.max()) <= 3
    assert float(w.mean()) == pytest.approx(1.0, abs=0.06)
    assert float(w.var()) == pytest.approx(16 / 12, rel=0.06)
    assert hull.log_density(torch.tensor([[0.0], [3.5]]).double()).tolist() == [-np.log(4), -np.inf]


@pytest.mark.parametrize(
    "corners",
    [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[1.0, 1.0]] * 4],
)
def test_a_hull_without_volume_is_refused_with_advice(corners: list[list[float]]) -> None:
    with pytest.raises(InputError, match=r'has no volume in 2 dimensions: use prior="gaussian", or a family of more'):
        Hull(torch.tensor(corners).double())


def test_a_gaussian_is_as_wide_as_a_further_draw_of_the_same_kind() -> None:
    places = torch.tensor([[0.0, 1.0], [2.0, 1.5], [1.0, -1.0], [3.0, 0.5]]).double()
    measure = Gaussian.around(places)
    covariance = (1 + 1 / 4) * torch.cov(places.T) + NEAREST**2 * torch.eye(2).double()
    torch.testing.assert_close(measure.mean, places.mean(0))
    torch.testing.assert_close(measure.chol @ measure.chol.mT, covariance)
    w = measure.draw(40_000, generator())
    torch.testing.assert_close(w.mean(0), places.mean(0), atol=0.03, rtol=0)
    torch.testing.assert_close(torch.cov(w.T), covariance, atol=0.06, rtol=0)
    exact = torch.distributions.MultivariateNormal(places.mean(0), covariance).log_prob(w[:50])
    torch.testing.assert_close(measure.log_density(w[:50]), exact)
    one = Gaussian.around(places[:1])  # a single task says where, not how far around
    torch.testing.assert_close(one.chol, NEAREST * torch.eye(2).double())


def test_measures_go_by_name(model: TraceModel) -> None:
    assert isinstance(measure_of("gaussian", model), Gaussian)
    assert isinstance(measure_of("hull", model), Hull)
    with pytest.raises(InputError, match=r"measure must be one of \['gaussian', 'hull'\], got 'box'"):
        measure_of("box", model)
    apart = TraceModel.fit([*runs("a", 2, shift=0.0), *runs("c", 2, shift=2.0)], tasks=0)
    with pytest.raises(
        InputError, match="tasks that share something, got 2 in 0 dimensions: make the family with dims"
    ):
        measure_of("gaussian", apart)


# where the task lies


def test_before_the_first_run_it_is_the_measure(model: TraceModel) -> None:
    measure = measure_of("gaussian", model)
    known = TaskPosterior.from_prior(model, "n", measure, 400, generator())
    assert float(known.weights.sum()) == pytest.approx(1.0)
    torch.testing.assert_close(known.mean, measure.mean, atol=0.05, rtol=0)
    width = torch.trace(measure.chol @ measure.chol.mT).sqrt()
    assert known.spread == pytest.approx(float(width), rel=0.1)
    assert all(place.encoder.tasks == (*SHIFTS, "n") for place in known.models[:3])
    torch.testing.assert_close(known.models[7].posterior.hyper.embedding[-1], known.locations[7])


@pytest.mark.parametrize(("like", "name"), [("a", "gaussian"), ("c", "hull")])
def test_a_task_that_behaves_like_a_known_one_lies_near_it_more_surely_as_more_is_seen(
    model: TraceModel, like: str, name: str
) -> None:
    (run,) = runs("n", 1, seed=5, shift=SHIFTS[like])
    measure = measure_of(name, model)
    first = TaskPosterior.from_runs(model, "n", [run.head(21)], measure, 24, generator())
    whole = TaskPosterior.from_runs(model, "n", [run], measure, 24, generator())
    for known in (first, whole):
        assert float(known.weights.sum()) == pytest.approx(1.0)
        assert len(known.models) == len(known.locations) == 24
        assert not torch.isnan(known.weights).any()
        own = gaps(model, known.mean)
        assert own[like] < own["c" if like == "a" else "a"]
    if name == "gaussian":
        assert min(own, key=lambda task: own[task]) == like  # in a hull the mean of the corner's places is further in
        assert whole.spread < first.spread < TaskPosterior.from_prior(model, "n", measure, 24, generator()).spread
    else:
        assert torch.isfinite(measure.log_density(whole.locations[whole.weights > 0])).all()


@pytest.mark.parametrize("name", ["gaussian", "hull"])
def test_the_weights_are_those_of_a_dense_posterior(flat: TraceModel, name: str) -> None:
    """p(w) p(runs | w) on a fine grid, each place fitted by itself, against importance sampling."""
    (run,) = runs("n", 1, seed=5, shift=1.2)
    measure, known = measure_of(name, flat), flat.posterior.hyper.embedding[:, 0]
    reach = 2.5 * float(known.std()) if name == "gaussian" else 0.5 * float(known.max() - known.min())
    grid = float(known.mean()) + reach * torch.linspace(-0.9999, 0.9999, 25).double()[:, None]
    bounds = [flat.with_task("n", w).update([run], learn=False).bound for w in grid]
    dense = torch.softmax(torch.tensor(bounds).double() + measure.log_density(grid), 0)
    mean = float(dense @ grid[:, 0])
    deviation = float(dense @ (grid[:, 0] - mean).square()) ** 0.5
    found = [TaskPosterior.from_runs(flat, "n", [run], measure, 30, generator(seed)) for seed in range(3)]
    means = np.array([float(known.mean[0]) for known in found])
    error = max(means.std(ddof=1) / 3**0.5, 0.02 * deviation)
    assert abs(means.mean() - mean) < 4 * error
    assert means.std(ddof=1) < 0.4 * deviation  # so many places are enough to place it
    assert float(np.mean([known.spread for known in found])) == pytest.approx(deviation, rel=0.15)
    assert deviation < 0.5 * reach


def test_moving_a_task_is_conditioning_with_it_there(model: TraceModel) -> None:
    (run,) = runs("n", 1, seed=5, shift=1.0)
    embedding = model.posterior.hyper.embedding
    base = model.with_task("n", embedding[0]).update([run], learn=False)
    inputs = base.encoder.inputs(usable_segments(base.segments, base.link))
    assert moved(base, inputs, embedding[0]).bound == pytest.approx(base.bound, abs=1e-4)
    there = 0.3 * embedding[0] + 0.7 * embedding[2]
    one, other = moved(base, inputs, there), model.with_task("n", there).update([run], learn=False)
    assert one.bound == pytest.approx(other.bound, abs=1e-3)
    first, second = (m.forecast(AHEAD, task="n", noise=False).mean for m in (one, other))
    np.testing.assert_allclose(first, second, rtol=1e-3)
    kept = one.posterior.hyper.embedding
    torch.testing.assert_close(kept, torch.cat([embedding, there[None]]))


def test_runs_far_outside_the_family_leave_the_known_tasks_where_they_are(model: TraceModel) -> None:
    """Values that outgrow the model's units would have it fitted anew, on axes that the places know nothing of."""
    (run,) = runs("n", 1, seed=5, shift=1.0)
    beyond = replace(run, values=run.values + 40 * (run.values - run.values[0]))
    known = TaskPosterior.from_runs(model, "n", [beyond], measure_of("gaussian", model), 12, generator())
    for place in known.models:
        torch.testing.assert_close(place.posterior.hyper.embedding[:-1], model.posterior.hyper.embedding)
    assert not torch.isnan(known.weights).any()


def test_models_are_sampled_as_often_as_their_weights_say(model: TraceModel) -> None:
    known = TaskPosterior.from_prior(model, "n", measure_of("gaussian", model), 4, generator())
    likely = torch.tensor([0.0, -2.0, 1.0, -1.0]).double()
    known = replace(known, weights=torch.tensor([0.1, 0.6, 0.3, 0.0]).double(), log_density=likely)
    for seed in range(5):
        drawn = known.sample(10, generator(seed))
        counts = [sum(model is one for model in drawn) for one in known.models]
        assert all(abs(count - 10 * float(w)) < 1 + 1e-9 for count, w in zip(counts, known.weights, strict=True))
    assert known.point() is known.models[2]  # the most probable place, not the one that was drawn too rarely
    centred = known.locations - known.mean
    by_hand = sum(float(w) * float(c @ c) for w, c in zip(known.weights, centred, strict=True)) ** 0.5
    assert known.spread == pytest.approx(by_hand)


# from where a run stands


@pytest.mark.parametrize(("order", "summed_rate"), [(1, False), (2, True)])
def test_draws_go_on_from_the_run_so_far(order: int, summed_rate: bool) -> None:
    """The same normals by `draw` of a schedule and by `draw_new` of its rates; the run so far may be a clone."""
    known = [run for task, shift in SHIFTS.items() for run in runs(task, 2, shift=shift)]
    model = TraceModel.fit(known, tasks=1, order=order, summed_rate=summed_rate, lr=(1e-4, 1e-1))
    (run,) = runs("c", 1, seed=9, shift=2.0)
    parent = run.head(41)
    clone = parent.fork(run.steps[41:61], run.values[41:61], run.schedule)
    for so_far in (parent, clone):
        drawn = model.draw(AHEAD, start=so_far, draws=40, generator=generator())
        ahead = model.encoder.future(AHEAD, so_far.last_step)
        normals = Normals.of(model.link.latents, 40, len(ahead.lengths), generator())
        number, x, lengths = torch.tensor(2), torch.tensor(ahead.unit_lr), torch.tensor(ahead.lengths)
        draw_new = partial(model.draw_new, x, number, normals, lengths)
        torch.testing.assert_close(draw_new(start=so_far).values, drawn.values)
        standing = model.run_state(number, normals, so_far)
        torch.testing.assert_close(standing.values[0], drawn.values[:, 0])
        fresh = model.run_state(number, normals)
        assert float((fresh.values[0] - standing.values[0]).abs().min()) > 0
        torch.testing.assert_close(draw_new().values[:, 0], fresh.values[0])
