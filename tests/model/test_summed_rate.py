"""The summed rate as an input: the same for recorded runs and for draws, and what it is worth."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from paceline import Objective, Schedule, Trace, TraceModel
from paceline.model import Normals
from paceline.problems import Quadratic
from paceline.problems.quadratic import QuadraticTraining

POINTS = np.array([0, 40, 80, 120])
RATES = np.array([0.3, 0.01, 0.1])


def run(rates: np.ndarray, seed: int) -> Trace:
    problem, schedule = Quadratic(noise=0.5, dims=20), Schedule(rates, POINTS)
    values = [(step, value["raw"]) for step, value in QuadraticTraining(problem, seed, every=4).advance(schedule, 120)]
    steps, losses = np.array([(0, problem.loss(np.ones(20))), *values]).T
    return Trace(steps.astype(int), losses, schedule, name=str(seed), objective=Objective(transform="log"))


@pytest.fixture(scope="module")
def model() -> TraceModel:
    rng = np.random.default_rng(0)
    runs = [run(10 ** rng.uniform(-2, 0, size=3), seed) for seed in range(4)]
    return TraceModel.fit(runs, intervals=POINTS, link="signed", lr=(1e-2, 1.0), summed_rate=True)


def test_runs_and_draws_have_the_same_summed_rate(model: TraceModel) -> None:
    """S_k = sum of rates times their share of the run, as log10(low + S) between the bounds."""
    trace = run(RATES, 9)
    inputs = model.encoder.inputs(model.encoder.segmenter.split(trace))
    expected = np.log10((0.01 + np.array([0, 0.3, 0.31]) / 3) / 0.01) / 2
    np.testing.assert_allclose(inputs[:, 2].numpy(), expected)
    drawn = model.draw(trace.schedule, draws=3)
    np.testing.assert_allclose(drawn.inputs[:, :, 2].numpy(), np.tile(expected, (3, 1)))
    for stop, intervals in ((41, 2), (81, 1)):
        rest = model.draw(trace.schedule, start=trace.head(len(trace.steps[trace.steps < stop])), draws=3)
        np.testing.assert_allclose(rest.inputs[0, :, 2].numpy(), expected[-intervals:])


def test_draws_and_quantiles_work_with_it(model: TraceModel) -> None:
    schedule, start = Schedule(RATES, POINTS), run(RATES, 9).head(11)
    forecast = model.forecast(schedule, start=start, noise=False)
    assert bool(np.all(forecast.quantile(0.1) < forecast.quantile(0.9)))
    level = model.quantile(0.5, [0.01, 0.3], start=start)
    assert level.shape == (2,)
    assert level[0] != level[1]
    x = torch.tensor([0.7, 0.0, 0.5]).double().requires_grad_()
    normals, lengths = Normals.draw(1, 5, 3, torch.Generator().manual_seed(0)), torch.ones(3).double()

    def final(x: torch.Tensor) -> torch.Tensor:
        return model.draw_batch(x, None, normals, lengths).values[:, -1].sum()

    (gradient,) = torch.autograd.grad(final(x), x)
    for k in range(3):
        step = 1e-5 * torch.eye(3).double()[k]
        rise = float(final(x.detach() + step) - final(x.detach() - step)) / 2e-5
        assert float(gradient[k]) == pytest.approx(rise, rel=1e-4, abs=1e-6)


def test_two_runs_at_the_same_value_are_distinguished_by_their_summed_rate() -> None:
    """The model's answer for the first rate on a quadratic where a high one looks worse at first and pays later."""
    rng = np.random.default_rng(1)
    runs = [run(10 ** rng.uniform(-1.5, 0.25, size=3), seed) for seed in range(40)]
    schedules = [Schedule([first, 0.2, 0.05], POINTS) for first in (0.3, 1.5)]
    truth = [Quadratic(noise=0.5, dims=20).expected_loss(schedule) for schedule in schedules]
    assert truth[1][40] > truth[0][40]
    assert truth[1][-1] < truth[0][-1]
    gaps = dict[bool, float]()
    for summed_rate in (False, True):
        model = TraceModel.fit(runs, intervals=POINTS, link="signed", summed_rate=summed_rate)
        ends = [float(model.forecast(schedule, noise=False).quantile(0.5)[-1]) for schedule in schedules]
        gaps[summed_rate] = np.log(ends[1] / ends[0]) - np.log(truth[1][-1] / truth[0][-1])
    assert abs(gaps[True]) < abs(gaps[False])


def test_an_update_keeps_the_summed_rate(model: TraceModel) -> None:
    more = model.update([run(RATES, 9)])
    assert more.encoder.summed_rate == model.encoder.summed_rate
    np.testing.assert_allclose(
        [s.rate_sum for s in more.segments[-3:]], [0.0, *(float(np.sum(RATES[: k + 1]) / 3) for k in range(2))]
    )


def test_shares_add_up(model: TraceModel) -> None:
    assert sum(model.encoder.segmenter.share(int(a), int(b)) for a, b in pairwise(POINTS)) == pytest.approx(1.0)
