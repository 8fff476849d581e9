"""The summed rate as an input: read from runs and drawn ahead alike; and what draws are made of."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from paceline import Schedule, Trace, TraceModel
from paceline.model.kernels import Hyperparameters, covariance, covariance_at
from paceline.model.paths import ConditionedProcess, Normals
from paceline.model.posterior import Posterior
from paceline.problems import Quadratic, SyntheticFamily
from paceline.problems.quadratic import QuadraticTraining
from paceline.traces import Objective

POINTS = np.array([0, 40, 80, 120])
RATES = np.array([0.3, 0.01, 0.1])


def run(rates: np.ndarray, seed: int) -> Trace:
    problem, schedule = Quadratic(noise=0.5, dims=20), Schedule(rates, POINTS)
    seen = [(step, value["raw"]) for step, value in QuadraticTraining(problem, seed, every=4).advance(schedule, 120)]
    steps, values = np.array([(0, problem.loss(np.ones(20))), *seen]).T
    return Trace(steps.astype(int), values, schedule, name=str(seed), objective=Objective(transform="log"))


@pytest.fixture(scope="module")
def model() -> TraceModel:
    rng = np.random.default_rng(0)
    runs = [run(10 ** rng.uniform(-2, 0, size=3), seed) for seed in range(4)]
    return TraceModel.fit(runs, intervals=POINTS, link="signed", lr=(1e-2, 1.0), summed_rate=True)


def test_runs_and_draws_have_the_same_summed_rate(model: TraceModel) -> None:
    """S_k = sum of rates times their share of the run, as log10(low + S) between the bounds."""
    trace = run(RATES, 9)
    read = model.encoder.inputs(model.encoder.segmenter.split(trace))
    expected = np.log10((0.01 + np.array([0, 0.3, 0.31]) / 3) / 0.01) / 2
    np.testing.assert_allclose(read[:, 2].numpy(), expected)
    drawn = model.draw(trace.schedule, draws=3)
    np.testing.assert_allclose(drawn.inputs[:, :, 2].numpy(), np.tile(expected, (3, 1)))
    for stop, kept in ((41, 2), (81, 1)):
        rest = model.draw(trace.schedule, start=trace.head(len(trace.steps[trace.steps < stop])), draws=3)
        np.testing.assert_allclose(rest.inputs[0, :, 2].numpy(), expected[-kept:])


def test_draws_and_quantiles_work_as_without_it(model: TraceModel) -> None:
    schedule, start = Schedule(RATES, POINTS), run(RATES, 9).head(11)
    forecast = model.forecast(schedule, start=start, noise=False)
    assert bool(np.all(forecast.quantile(0.1) < forecast.quantile(0.9)))
    level = model.quantile(0.5, [0.01, 0.3], start=start)
    assert level.shape == (2,)
    assert level[0] != level[1]
    x = torch.tensor([0.7, 0.0, 0.5]).double().requires_grad_()
    normals, lengths = Normals.of(1, 5, 3, torch.Generator().manual_seed(0)), torch.ones(3).double()

    def final(x: torch.Tensor) -> torch.Tensor:
        return model.draw_new(x, None, normals, lengths).values[:, -1].sum()

    (gradient,) = torch.autograd.grad(final(x), x)
    for k in range(3):
        step = 1e-5 * torch.eye(3).double()[k]
        rise = float(final(x.detach() + step) - final(x.detach() - step)) / 2e-5
        assert float(gradient[k]) == pytest.approx(rise, rel=1e-4, abs=1e-6)


def test_two_runs_at_one_value_are_told_apart_by_how_far_they_have_come() -> None:
    """The model's answer for the first rate on a quadratic where a high one looks worse at first and pays later."""
    rng = np.random.default_rng(1)
    runs = [run(10 ** rng.uniform(-1.5, 0.25, size=3), seed) for seed in range(40)]
    schedules = [Schedule([first, 0.2, 0.05], POINTS) for first in (0.3, 1.5)]
    truth = [Quadratic(noise=0.5, dims=20).expected_loss(schedule) for schedule in schedules]
    assert truth[1][40] > truth[0][40]
    assert truth[1][-1] < truth[0][-1]
    gaps = dict[bool, float]()
    for summed_rate in (False, True):
        fitted = TraceModel.fit(runs, intervals=POINTS, link="signed", summed_rate=summed_rate)
        ends = [float(fitted.forecast(schedule, noise=False).quantile(0.5)[-1]) for schedule in schedules]
        gaps[summed_rate] = np.log(ends[1] / ends[0]) - np.log(truth[1][-1] / truth[0][-1])
    assert abs(gaps[True]) < abs(gaps[False])


def test_an_update_keeps_the_summed_rate(model: TraceModel) -> None:
    more = model.update([run(RATES, 9)])
    assert more.encoder.summed_rate == model.encoder.summed_rate
    np.testing.assert_allclose(
        [s.rate_sum for s in more.segments[-3:]], [0.0, *(float(np.sum(RATES[: k + 1]) / 3) for k in range(2))]
    )


def test_points_known_before_a_split_count_for_each_part(rng: np.random.Generator) -> None:
    """Conditioning before and after `repeated` is conditioning on all points, in this order, part by part."""
    family = SyntheticFamily.of("linear", rng)
    posterior: Posterior = TraceModel.fit([family.run(rng.uniform(size=5), rng) for _ in range(3)]).posterior
    z, values = torch.from_numpy(rng.uniform(size=(6, 2))), torch.from_numpy(rng.normal(size=6))
    plain = ConditionedProcess(posterior)
    split = plain
    for i in range(5):
        plain = plain.marginal(z[i]).condition_on(values[i].reshape(1))
        split = split.repeat(2) if i in (2, 3) else split
        place = z[i].expand(*split.batch, 2)
        split = split.marginal(place).condition_on(values[i].expand(1, *split.batch))
    one, many = plain.marginal(z[5]), split.marginal(z[5])
    assert many.mean.shape == (1, 2, 2)
    torch.testing.assert_close(many.mean, one.mean.reshape(1, 1, 1).expand(1, 2, 2))
    torch.testing.assert_close(many.variance, one.variance.reshape(1, 1, 1).expand(1, 2, 2))
    assert [len(block.features) for block in split.blocks] == [2, 1, 2]


@pytest.mark.parametrize("tasks", [0, 3])
def test_the_covariance_of_draws_is_the_covariance(tasks: int, rng: np.random.Generator) -> None:
    hyper = Hyperparameters.start(torch.zeros(2).double(), 3, nugget=True, tasks=tasks, dims=2 if tasks else 0)
    a, b = (torch.from_numpy(rng.uniform(size=(n, 3 + (tasks > 0)))) for n in (7, 5))
    if tasks:
        a[:, 3], b[:, 3] = torch.arange(7) % 3, torch.arange(5) % 3
    torch.testing.assert_close(covariance_at(hyper, a, b), covariance(hyper, a, b))
    weight = torch.from_numpy(rng.normal(size=(2, 7, 5)))
    slopes = [
        torch.autograd.grad((k(hyper, a.requires_grad_(), b) * weight).sum(), a)[0][:, :3]
        for k in (covariance_at, covariance)
    ]
    torch.testing.assert_close(*slopes)


def test_shares_add_up(model: TraceModel) -> None:
    assert sum(model.encoder.segmenter.share(int(a), int(b)) for a, b in pairwise(POINTS)) == pytest.approx(1.0)
