"""The posterior of a new task's location against a dense evaluation, and the models it holds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.model.location_prior import location_prior_of
from paceline.model.preprocess import usable_segments
from paceline.model.task_posterior import TaskPosterior, move_last_task
from tests.model.example_runs import NEW_SCHEDULE, task_runs

SHIFTS = {"a": 0.0, "b": 1.0, "c": 2.0}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def model() -> TraceModel:
    return TraceModel.fit([run for task, shift in SHIFTS.items() for run in task_runs(task, 4, shift=shift)], tasks=2)


@pytest.fixture(scope="module")
def flat() -> TraceModel:
    """Two tasks on a line."""
    runs = [*task_runs("a", 4, shift=0.0), *task_runs("c", 4, shift=2.0)]
    return TraceModel.fit(runs, tasks=1)


def gaps(model: TraceModel, w: torch.Tensor) -> dict[str, float]:
    return dict(zip(model.encoder.tasks, (model.posterior.hyper.embedding - w).norm(dim=1).tolist(), strict=False))


def test_before_the_first_run_it_is_the_prior(model: TraceModel) -> None:
    prior = location_prior_of("gaussian", model)
    posterior = TaskPosterior.from_prior(model, "n", prior, 400, generator())
    assert float(posterior.weights.sum()) == pytest.approx(1.0)
    torch.testing.assert_close(posterior.mean, prior.mean, atol=0.05, rtol=0)
    width = torch.trace(prior.chol @ prior.chol.mT).sqrt()
    assert posterior.spread == pytest.approx(float(width), rel=0.1)
    assert all(each.encoder.tasks == (*SHIFTS, "n") for each in posterior.models[:3])
    torch.testing.assert_close(posterior.models[7].posterior.hyper.embedding[-1], posterior.locations[7])


@pytest.mark.parametrize(("like", "name"), [("a", "gaussian"), ("c", "hull")])
def test_a_task_that_behaves_like_another_is_placed_near_it_with_less_spread_as_it_runs(
    model: TraceModel, like: str, name: str
) -> None:
    (run,) = task_runs("n", 1, seed=5, shift=SHIFTS[like])
    prior = location_prior_of(name, model)
    first = TaskPosterior.from_runs(model, "n", [run.head(21)], prior, 24, generator())
    whole = TaskPosterior.from_runs(model, "n", [run], prior, 24, generator())
    for posterior in (first, whole):
        assert float(posterior.weights.sum()) == pytest.approx(1.0)
        assert len(posterior.models) == len(posterior.locations) == 24
        assert not torch.isnan(posterior.weights).any()
        own = gaps(model, posterior.mean)
        assert own[like] < own["c" if like == "a" else "a"]
    if name == "gaussian":
        assert (
            min(own, key=lambda task: own[task]) == like
        )  # in a hull the mean of the corner's locations is further in
        assert whole.spread < first.spread < TaskPosterior.from_prior(model, "n", prior, 24, generator()).spread
    else:
        assert torch.isfinite(prior.log_density(whole.locations[whole.weights > 0])).all()


@pytest.mark.parametrize("name", ["gaussian", "hull"])
def test_the_weights_are_those_of_a_dense_posterior(flat: TraceModel, name: str) -> None:
    """p(w) p(runs | w) on a fine grid, each location fitted alone, against importance sampling."""
    (run,) = task_runs("n", 1, seed=5, shift=1.2)
    prior, tasks = location_prior_of(name, flat), flat.posterior.hyper.embedding[:, 0]
    reach = 2.5 * float(tasks.std()) if name == "gaussian" else 0.5 * float(tasks.max() - tasks.min())
    grid = float(tasks.mean()) + reach * torch.linspace(-0.9999, 0.9999, 25).double()[:, None]
    bounds = [flat.with_task("n", w).update([run], learn=False).bound for w in grid]
    dense = torch.softmax(torch.tensor(bounds).double() + prior.log_density(grid), 0)
    mean = float(dense @ grid[:, 0])
    deviation = float(dense @ (grid[:, 0] - mean).square()) ** 0.5
    posteriors = [TaskPosterior.from_runs(flat, "n", [run], prior, 30, generator(seed)) for seed in range(3)]
    means = np.array([float(posterior.mean[0]) for posterior in posteriors])
    error = max(means.std(ddof=1) / 3**0.5, 0.02 * deviation)
    assert abs(means.mean() - mean) < 4 * error
    assert means.std(ddof=1) < 0.4 * deviation  # so many locations are enough
    assert float(np.mean([posterior.spread for posterior in posteriors])) == pytest.approx(deviation, rel=0.15)
    assert deviation < 0.5 * reach


def test_moving_a_task_is_conditioning_with_it_there(model: TraceModel) -> None:
    (run,) = task_runs("n", 1, seed=5, shift=1.0)
    embedding = model.posterior.hyper.embedding
    base = model.with_task("n", embedding[0]).update([run], learn=False)
    inputs = base.encoder.inputs(usable_segments(base.segments, base.link))
    assert move_last_task(base, inputs, embedding[0]).bound == pytest.approx(base.bound, abs=1e-4)
    location = 0.3 * embedding[0] + 0.7 * embedding[2]
    one, other = move_last_task(base, inputs, location), model.with_task("n", location).update([run], learn=False)
    assert one.bound == pytest.approx(other.bound, abs=1e-3)
    first, second = (m.forecast(NEW_SCHEDULE, task="n", noise=False).mean for m in (one, other))
    np.testing.assert_allclose(first, second, rtol=1e-3)
    embedding_after = one.posterior.hyper.embedding
    torch.testing.assert_close(embedding_after, torch.cat([embedding, location[None]]))


def test_runs_far_outside_the_family_do_not_move_the_other_tasks(model: TraceModel) -> None:
    """Values that outgrow the model's units would have it fitted anew, on other axes."""
    (run,) = task_runs("n", 1, seed=5, shift=1.0)
    beyond = replace(run, values=run.values + 40 * (run.values - run.values[0]))
    posterior = TaskPosterior.from_runs(model, "n", [beyond], location_prior_of("gaussian", model), 12, generator())
    for each in posterior.models:
        torch.testing.assert_close(each.posterior.hyper.embedding[:-1], model.posterior.hyper.embedding)
    assert not torch.isnan(posterior.weights).any()


def test_models_are_sampled_as_often_as_their_weights_say(model: TraceModel) -> None:
    posterior = TaskPosterior.from_prior(model, "n", location_prior_of("gaussian", model), 4, generator())
    likely = torch.tensor([0.0, -2.0, 1.0, -1.0]).double()
    posterior = replace(posterior, weights=torch.tensor([0.1, 0.6, 0.3, 0.0]).double(), log_density=likely)
    for seed in range(5):
        drawn = posterior.sample(10, generator(seed))
        counts = [sum(model is one for model in drawn) for one in posterior.models]
        assert all(abs(count - 10 * float(w)) < 1 + 1e-9 for count, w in zip(counts, posterior.weights, strict=True))
    assert posterior.most_probable() is posterior.models[2]  # by density, not by weight
    centred = posterior.locations - posterior.mean
    by_hand = sum(float(w) * float(c @ c) for w, c in zip(posterior.weights, centred, strict=True)) ** 0.5
    assert posterior.spread == pytest.approx(by_hand)
