"""The multi-task model has the single-task model as its limit; conditioning agrees with dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.model.kernels import Hyperparameters
from paceline.model.likelihood import TraceLikelihood
from paceline.model.posterior import Posterior
from paceline.model.process import ConditionedProcess
from paceline.model.sites import Projection, Sites, solve_sites
from paceline.model.start_distribution import StartDistribution
from paceline.traces import Segment
from tests import reference
from tests.model.example_runs import NEW_SCHEDULE, family_runs, task_runs


def solved(model: TraceModel, hyper: Hyperparameters, start: Sites) -> TraceModel:
    """The same intervals at other hyperparameters; the sites are solved to rounding errors from near the solution.

    With two latents there can be several solutions, so both searches start from the same sites.
    """
    inputs = model.encoder.inputs(model.segments)
    prior = Projection.of(hyper, inputs, inputs)
    sites, bound = solve_sites(prior, start, model.state.likelihood, tolerance=1e-13, steps=1000)
    posterior = Posterior.of(prior, inputs, sites, bound)
    return TraceModel(replace(model.state, posterior=posterior), ConditionedProcess(posterior))


def as_one_task(model: TraceModel, segments: list[Segment]) -> TraceModel:
    """The single-task model of some of the intervals, with the hyperparameters and units of another."""
    encoder = replace(model.encoder, tasks=())
    likelihood = TraceLikelihood.of(segments, model.link, encoder.scaling)
    rows = torch.tensor([i for i, s in enumerate(model.segments) if s in segments])
    start = StartDistribution.of(segments, encoder.scaling, encoder.segmenter.clock)
    state = replace(
        model.state, encoder=encoder, segments=tuple(segments), likelihood=likelihood, start_distribution=start
    )
    hyper = replace(model.posterior.hyper, embedding=torch.zeros(0, 0).double())
    return solved(replace(model, state=state), hyper, model.posterior.sites.rows(rows))


def with_start(model: TraceModel, start: StartDistribution) -> TraceModel:
    return replace(model, state=replace(model.state, start_distribution=start))


def same_draws(one: TraceModel, other: TraceModel, task: str) -> None:
    """Compare latents and values from the same starts; both are functions of the same normals."""
    start = one.start_distribution
    other = with_start(other, replace(start, tasks=()))
    one = with_start(one, replace(start, tasks=((start.mean, start.deviation),) * len(one.encoder.tasks)))
    first, second = one.draw(NEW_SCHEDULE, task=task, draws=50), other.draw(NEW_SCHEDULE, draws=50)
    torch.testing.assert_close(first.latents, second.latents, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(first.values, second.values, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_without_dimensions_a_task_is_the_single_task_model(link: str) -> None:
    model = TraceModel.fit(family_runs(3, link=link), link=link, tasks=0)
    model = solved(model, model.posterior.hyper, model.posterior.sites)
    for number, task in enumerate(model.encoder.tasks):
        own = [s for s in model.segments if s.task == task]
        alone = as_one_task(model, own)
        rows = [i for i, s in enumerate(model.segments) if s.task == task]
        torch.testing.assert_close(model.posterior.row_mean[:, rows], alone.posterior.row_mean, rtol=1e-7, atol=1e-7)
        same_draws(model, alone, task)
        assert model.start_distribution.for_task(number)[0] == pytest.approx(alone.start_distribution.mean)
        assert float(model.state.noise_variance(number)) == pytest.approx(float(alone.state.noise_variance()), rel=1e-7)


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_equal_embeddings_are_the_single_task_model(link: str) -> None:
    model = TraceModel.fit(family_runs(3, link=link), link=link, tasks=2)
    hyper = model.posterior.hyper
    equal = solved(model, replace(hyper, embedding=hyper.embedding[:1].expand(3, 2).clone()), model.posterior.sites)
    alone = as_one_task(model, list(model.segments))
    torch.testing.assert_close(equal.posterior.row_mean, alone.posterior.row_mean, rtol=1e-7, atol=1e-7)
    assert equal.bound == pytest.approx(alone.bound, rel=1e-9)
    for task in equal.encoder.tasks:
        same_draws(equal, alone, task)


def test_one_task_alone_is_the_single_task_model() -> None:
    traces = task_runs("a", 4)
    model = TraceModel.fit(traces, tasks=2)
    alone = as_one_task(model, list(model.segments))
    model = solved(model, model.posterior.hyper, model.posterior.sites)
    assert model.bound == pytest.approx(alone.bound, rel=1e-9)
    assert model.start_distribution.for_task(0) == pytest.approx(
        TraceModel.fit(traces).start_distribution.for_task(None)
    )
    noisy = model.forecast(NEW_SCHEDULE, task="a").draws
    np.testing.assert_allclose(noisy, alone.forecast(NEW_SCHEDULE).draws, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("at", [None, {"a": {"rows": 100, "depth": 2}, "b": {"rows": 1_000, "depth": 3}}])
@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_conditioning_on_a_draw_agrees_with_dense_matrices(link: str, at) -> None:
    """Dense: prior over all rows, sites of those observed, the drawn ones conditioned up to the random effect."""
    model = TraceModel.fit(family_runs(2, link=link), link=link, tasks=2, at=at)
    drawn = model.draw(NEW_SCHEDULE, task="b", draws=1)[0]
    conditioned = model.condition_on(drawn)
    rng = np.random.default_rng(0)
    at = torch.from_numpy(np.column_stack([rng.uniform(size=(6, 2)), np.arange(6) % 2]))
    marginal = conditioned.process.repeat(6).marginal(at)
    hyper, rows = model.posterior.hyper, model.encoder.inputs(model.segments)
    z = torch.cat([rows, drawn.inputs, at]).numpy()
    n, d = len(rows), len(drawn.inputs)
    for p in range(model.link.latents):
        variance, nugget = float(hyper.variance[p]), float(hyper.nugget[p])
        cov = reference.multitask(
            z,
            variance,
            hyper.log_lengthscales[p].exp().numpy(),
            hyper.embedding.numpy(),
            hyper.coordinates.numpy(),
            hyper.log_coordinate_lengthscales.exp().numpy(),
        )
        mean = np.full(len(z), float(hyper.mean[p]))
        a, b = (sites[p].numpy() for sites in (model.posterior.sites.a, model.posterior.sites.b))
        mean, cov = reference.observed_through_sites(mean, cov, a, b, nugget)
        mean, cov = reference.condition(mean, cov, np.arange(n, n + d), drawn.latents[p].numpy(), nugget)
        np.testing.assert_allclose(marginal.mean[p].numpy(), mean[n + d :], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(marginal.variance[p].numpy(), np.diag(cov)[n + d :], rtol=1e-3, atol=1e-5)
