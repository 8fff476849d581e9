"""The multi-task model: its limits, its embeddings, a task that comes later, conditioning against dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import Schedule, Trace, TraceModel
from paceline.errors import InputError
from paceline.model.kernels import Hyperparameters
from paceline.model.likelihood import TraceLikelihood
from paceline.model.paths import ConditionedProcess
from paceline.model.posterior import Posterior, Projection, Sites, solve_sites
from paceline.model.task_embedding import on_principal_axes
from paceline.problems import SyntheticFamily
from paceline.traces import Segment
from tests import reference

STEPS = 200
AHEAD = Schedule([1e-2, 3e-3, 2e-2, 1e-3, 5e-3], np.arange(6) * 40)


def runs(task: str, count: int, seed: int = 0, *, shift: float = 0.0, link: str = "linear") -> list[Trace]:
    """Runs of one drawn family; tasks differ by a shift of the level at which they run."""
    rng = np.random.default_rng([seed, ord(task[0])])
    family = SyntheticFamily.of(link, np.random.default_rng(7))
    family = replace(family, means=tuple(mean + shift for mean in family.means))
    return [replace(family.run(rng.uniform(size=5), rng, name=f"{task}{seed}-{i}"), task=task) for i in range(count)]


def family(tasks: int, count: int = 3, link: str = "linear") -> list[Trace]:
    return [run for m in range(tasks) for run in runs(chr(97 + m), count, shift=0.3 * m, link=link)]


def solved(model: TraceModel, hyper: Hyperparameters, start: Sites) -> TraceModel:
    """The same intervals at other hyperparameters, the sites solved to rounding errors from near the solution.

    With two latents there can be several solutions, so the ones compared begin alike.
    """
    inputs = model.encoder.inputs(model.segments)
    prior = Projection.of(hyper, inputs, inputs)
    sites, bound = solve_sites(prior, start, model.likelihood, tolerance=1e-13, most=1000)
    return replace(model, process=ConditionedProcess(Posterior.of(prior, inputs, sites, bound)))


def as_one_task(model: TraceModel, segments: list[Segment]) -> TraceModel:
    """The single-task model of some of the intervals, with the hyperparameters and units of another."""
    encoder = replace(model.encoder, tasks=())
    likelihood = TraceLikelihood.of(segments, model.link, encoder.scaling)
    rows = torch.tensor([i for i, s in enumerate(model.segments) if s in segments])
    law = encoder.start_distribution(segments)
    alone = replace(model, encoder=encoder, segments=tuple(segments), likelihood=likelihood, start_distribution=law)
    return solved(
        alone, replace(model.posterior.hyper, embedding=torch.zeros(0, 0).double()), model.posterior.sites.rows(rows)
    )


def same_draws(one: TraceModel, other: TraceModel, task: str) -> None:
    """Compare latents and values from the same starts; both are functions of the same normals."""
    law = one.start_distribution
    other = replace(other, start_distribution=replace(law, tasks=()))
    one = replace(one, start_distribution=replace(law, tasks=((law.mean, law.deviation),) * len(one.encoder.tasks)))
    first, second = one.draw(AHEAD, task=task, draws=50), other.draw(AHEAD, draws=50)
    torch.testing.assert_close(first.latents, second.latents, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(first.values, second.values, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_without_dimensions_a_task_is_the_single_task_model(link: str) -> None:
    model = TraceModel.fit(family(3, link=link), link=link, tasks=0)
    model = solved(model, model.posterior.hyper, model.posterior.sites)
    for number, task in enumerate(model.encoder.tasks):
        own = [s for s in model.segments if s.task == task]
        alone = as_one_task(model, own)
        rows = [i for i, s in enumerate(model.segments) if s.task == task]
        torch.testing.assert_close(model.posterior.row_mean[:, rows], alone.posterior.row_mean, rtol=1e-7, atol=1e-7)
        same_draws(model, alone, task)
        assert model.start_distribution.of(number)[0] == pytest.approx(alone.start_distribution.mean)
        assert float(model._noise_variance(number)) == pytest.approx(float(alone._noise_variance()), rel=1e-7)


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_equal_embeddings_are_the_single_task_model(link: str) -> None:
    model = TraceModel.fit(family(3, link=link), link=link, tasks=2)
    hyper = model.posterior.hyper
    equal = solved(model, replace(hyper, embedding=hyper.embedding[:1].expand(3, 2).clone()), model.posterior.sites)
    alone = as_one_task(model, list(model.segments))
    torch.testing.assert_close(equal.posterior.row_mean, alone.posterior.row_mean, rtol=1e-7, atol=1e-7)
    assert equal.bound == pytest.approx(alone.bound, rel=1e-9)
    for task in equal.encoder.tasks:
        same_draws(equal, alone, task)


def test_one_task_alone_is_the_single_task_model() -> None:
    traces = runs("a", 4)
    model = TraceModel.fit(traces, tasks=2)
    alone = as_one_task(model, list(model.segments))
    model = solved(model, model.posterior.hyper, model.posterior.sites)
    assert model.bound == pytest.approx(alone.bound, rel=1e-9)
    assert model.start_distribution.of(0) == pytest.approx(TraceModel.fit(traces).start_distribution.of(None))
    noisy = model.forecast(AHEAD, task="a").draws
    np.testing.assert_allclose(noisy, alone.forecast(AHEAD).draws, rtol=1e-7, atol=1e-7)


def test_the_canonical_frame_does_not_depend_on_the_axes(rng: np.random.Generator) -> None:
    for tasks, dims in ((2, 1), (5, 2), (3, 3), (2, 3), (10, 2)):
        w = rng.normal(size=(tasks, dims))
        rotation = np.linalg.qr(rng.normal(size=(dims, dims)))[0]
        shown = on_principal_axes(w)
        gaps = np.linalg.norm(w[:, None] - w[None], axis=-1)
        np.testing.assert_allclose(np.linalg.norm(shown[:, None] - shown[None], axis=-1), gaps, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(shown, axis=1), np.linalg.norm(w, axis=1), atol=1e-12)
        used = min(tasks - 1, dims)  # further axes are not determined by the tasks
        np.testing.assert_allclose(on_principal_axes(w @ rotation)[:, :used], shown[:, :used], atol=1e-9)
        np.testing.assert_allclose(on_principal_axes(shown)[:, :used], shown[:, :used], atol=1e-9)
    assert on_principal_axes(np.zeros((3, 0))).shape == (3, 0)


def test_tasks_that_behave_alike_lie_close() -> None:
    far = [run for task, shift in (("a", 0.0), ("b", 0.0), ("c", 2.0)) for run in runs(task, 5, shift=shift)]
    places = TraceModel.fit(far, tasks=2).task_embedding
    assert np.linalg.norm(places["a"] - places["b"]) < 0.5 * np.linalg.norm(places["a"] - places["c"])


def test_ten_tasks_of_one_run_each() -> None:
    model = TraceModel.fit(family(10, count=1), tasks=2)
    assert list(model.task_embedding) == [chr(97 + m) for m in range(10)]
    assert all(np.isfinite(model.forecast(AHEAD, task=task).draws).all() for task in model.encoder.tasks)


@pytest.mark.parametrize("dims", [0, 2])
def test_a_task_comes_later(dims: int) -> None:
    known = [*runs("b", 4), *runs("c", 4, shift=2.0)]
    model = TraceModel.fit(known, tasks=dims, lr=(1e-4, 1e-1))
    more = model.update(runs("a", 2, seed=1, shift=2.0))
    assert more.encoder.tasks == ("b", "c", "a")
    assert more.posterior.hyper.embedding.shape == (3, dims)
    assert np.isfinite(more.forecast(AHEAD, task="a").draws).all()
    if dims:
        places = more.task_embedding
        assert np.linalg.norm(places["a"] - places["c"]) < np.linalg.norm(places["a"] - places["b"])
        cold = TraceModel.fit([*known, *runs("a", 2, seed=1, shift=2.0)], tasks=dims, lr=(1e-4, 1e-1))
        assert more.bound > cold.bound - 2.0  # no worse than a fit from nothing, which takes longer
    again = more.update(runs("a", 1, seed=2, shift=2.0))
    assert again.encoder.tasks == more.encoder.tasks


def test_a_task_of_which_only_the_location_is_known() -> None:
    model = TraceModel.fit(family(2), tasks=2)
    twin = model.with_task("twin", model.posterior.hyper.embedding[0])
    one, two = (twin.draw(AHEAD, task=task, draws=20).latents[..., 0] for task in ("a", "twin"))
    assert one.shape == two.shape
    law = replace(twin.start_distribution, tasks=((0.2, 0.0),) * 3)
    twin = replace(twin, start_distribution=law)
    torch.testing.assert_close(
        twin.draw(AHEAD, task="a", draws=20).values, twin.draw(AHEAD, task="twin", draws=20).values
    )
    with pytest.raises(InputError, match="2 coordinates here, got"):
        model.with_task("new", [0.0])
    with pytest.raises(InputError, match="take another name"):
        model.with_task("a", [0.0, 0.0])


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_conditioning_on_a_draw_is_refitting_on_it(link: str) -> None:
    """Dense: prior over all rows, sites of those observed, the drawn ones known up to the random effect."""
    model = TraceModel.fit(family(2, link=link), link=link, tasks=2)
    drawn = model.draw(AHEAD, task="b", draws=1)[0]
    known = model.condition_on(drawn)
    rng = np.random.default_rng(0)
    at = torch.from_numpy(np.column_stack([rng.uniform(size=(6, 2)), np.arange(6) % 2]))
    look = known.process.repeat(6).marginal(at)
    hyper, rows = model.posterior.hyper, model.encoder.inputs(model.segments)
    z = torch.cat([rows, drawn.inputs, at]).numpy()
    n, d = len(rows), len(drawn.inputs)
    for p in range(model.link.latents):
        variance, nugget = float(hyper.variance[p]), float(hyper.nugget[p])
        cov = reference.multitask(z, variance, hyper.log_lengthscales[p].exp().numpy(), hyper.embedding.numpy())
        mean = np.full(len(z), float(hyper.mean[p]))
        a, b = (sites[p].numpy() for sites in (model.posterior.sites.a, model.posterior.sites.b))
        mean, cov = reference.observed_through_sites(mean, cov, a, b, nugget)
        mean, cov = reference.condition(mean, cov, np.arange(n, n + d), drawn.latents[p].numpy(), nugget)
        np.testing.assert_allclose(look.mean[p].numpy(), mean[n + d :], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(look.variance[p].numpy(), np.diag(cov)[n + d :], rtol=1e-3, atol=1e-5)


def test_conditioning_on_a_run_keeps_what_was_learnt() -> None:
    model = TraceModel.fit(family(2), tasks=2)
    more = model.update(runs("a", 1, seed=5), learn=False)
    torch.testing.assert_close(more.posterior.hyper.free(), model.posterior.hyper.free())
    before, after = (m.draw(AHEAD, task="a", draws=400).latents.var() for m in (model, more))
    assert float(after) < 1.05 * float(before)
