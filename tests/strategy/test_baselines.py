"""Baselines: the published rules, one by one, and that they tune at all."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.shapes import Constant
from paceline.strategy import (
    AutoLRS,
    FixedSchedules,
    PopulationBasedBandits,
    PopulationBasedTraining,
    Strategy,
)
from paceline.strategy.baselines import regression
from paceline.strategy.baselines.autolrs import CANDIDATES, exponential, matern, next_rate
from paceline.strategy.baselines.population import changes, kernel, upper_bound
from paceline.study import Dropped, Event, Interval
from paceline.tuner import Tuner, tune
from tests.reference import condition
from tests.tuner.toy_study import loss

BASELINES: dict[str, Strategy] = {
    "pbt": PopulationBasedTraining(forks=4, intervals=8),
    "pb2": PopulationBasedBandits(forks=4, intervals=8),
    "autolrs": AutoLRS(),
    "autolrs-5": AutoLRS(cost=5),
}


@pytest.mark.parametrize("name", list(BASELINES))
def test_it_beats_the_worst_fixed_rate_and_keeps_its_cost(name: str) -> None:
    events: list[Event] = []
    strategy, settings = BASELINES[name], {"steps": 620, "lr": (1e-3, 1.5)}
    result = tune(
        lambda: QuadraticTraining(Quadratic(), every=2), strategy=strategy, on_event=events.append, **settings
    )
    ends = tune(
        lambda: QuadraticTraining(Quadratic()), strategy=FixedSchedules((Constant(),), runs=5), **settings
    ).history.forks
    assert result.value is not None
    assert result.value < max(fork.recent() for fork in ends)
    took = sum(e.stop - e.start for e in events if isinstance(e, Interval))
    assert took <= Tuner(strategy=strategy, **settings).total_steps


def population(rounds: int) -> Tuner:
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=PopulationBasedBandits(forks=6, intervals=10))
    while tuner.history.round <= rounds:
        for p in tuner.ask() or []:
            if p.fork == 1:
                tuner.fail(p, "out of memory")
            else:
                tuner.tell(p, *loss(p))
    return tuner


def test_pb2_replaces_the_worst_quarter_and_what_failed_by_clones_of_the_best() -> None:
    tuner = population(1)
    ranked = sorted((f for f in tuner.history.forks if f.trace and not f.failure), key=lambda f: f.trace.values[-1])
    clones = [f for f in tuner.history.forks if f.parent is not None]
    assert len(clones) == 2
    assert {f.parent for f in clones} <= {f.id for f in ranked[:2]}
    assert [f.id for f in tuner.history.forks if not f.alive] == sorted([1, ranked[-1].id])


def test_pb2_models_standardised_changes_and_failures_as_the_worst() -> None:
    tuner = population(3)
    points, y = changes(tuner.history, [40 * k for k in range(11)])
    assert points.shape == (18, 2)
    assert set(points[:, 0]) == {0.0, 1.0, 2.0}
    failed = int(np.flatnonzero((points[:, 0] == 0) & (y == y.min()))[0])
    rate = tuner.history.fork(1).multiplier
    assert any(np.isclose(points[i, 1], np.log10(rate / 1e-4) / 3) for i in np.flatnonzero(y == y.min()))
    assert y[failed] >= -2
    assert np.abs(y).max() <= 2


def test_the_bound_is_the_dense_formula_with_decay_and_pending_points() -> None:
    rng = np.random.default_rng(0)
    points = np.stack([np.repeat(np.arange(5.0), 3), rng.uniform(size=15)], 1)
    y = np.sin(5 * points[:, 1]) + 0.1 * rng.standard_normal(15)
    x, pending = np.array([0.1, 0.4, 0.8]), np.array([[5.0, 0.4], [5.0, 0.5]])
    grid = [(length, e) for length in np.geomspace(0.05, 1.0, 5) for e in (0.0, 0.03, 0.1, 0.3, 0.5)]
    best = regression.fit([kernel(points, points, *hyper) for hyper in grid], y)
    every = np.concatenate([points, pending, np.stack([np.full(3, 5.0), x], 1)])
    joint = np.zeros((20, 20))
    length, e = grid[best.kernel]
    for i in range(20):
        for j in range(20):
            decay = (1 - e) ** (abs(every[i, 0] - every[j, 0]) / 2)
            joint[i, j] = best.variance * np.exp(-0.5 * ((every[i, 1] - every[j, 1]) / length) ** 2) * decay
    noise = best.noise * best.variance
    real = [*range(15), 17, 18, 19]
    mean, _ = condition(np.zeros(18), joint[np.ix_(real, real)], np.arange(15), y, noise)
    _, cov = condition(np.zeros(20), joint, np.arange(17), np.zeros(17), noise)
    expected = mean[-3:] + np.sqrt(0.2 * np.log(0.4 * 15)) * np.sqrt(np.diag(cov)[-3:])
    np.testing.assert_allclose(upper_bound(points, y, pending, 5.0, x), expected, rtol=1e-6)


def test_regression_chooses_by_the_marginal_likelihood() -> None:
    x = np.linspace(0, 1, 30)
    y = np.sin(12 * x)
    grams = [matern(x, x, length) for length in (0.01, 0.3, 30.0)]
    best = regression.fit(grams, y)
    assert best.kernel == 1
    dense = []
    for gram in grams:
        for noise in regression.NOISES:
            cov = gram + noise * np.eye(30)
            variance = y @ np.linalg.solve(cov, y) / 30
            dense.append(-0.5 * (30 * np.log(variance) + np.linalg.slogdet(cov)[1]))
    assert best.noise == regression.NOISES[int(np.argmax(dense)) % len(regression.NOISES)]


@pytest.mark.parametrize(("a", "b", "c"), [(2.0, -0.03, 0.5), (-1.0, -0.2, 3.0), (0.3, -0.005, 1.0)])
def test_the_exponential_is_recovered_also_with_an_outlier(a: float, b: float, c: float) -> None:
    t = np.arange(1.0, 101.0)
    y = a * np.exp(b * t) + c
    np.testing.assert_allclose(exponential(t, y), (a, b, c), rtol=1e-3)
    y[40] += 30.0
    np.testing.assert_allclose(exponential(t, y), (a, b, c), rtol=1e-3)


def test_few_values_are_not_extrapolated() -> None:
    assert exponential(np.array([1.0, 2.0]), np.array([3.0, 2.0])) == (0.0, -1.0, 2.0)


def test_the_next_trial_has_the_lowest_confidence_bound() -> None:
    x, losses = np.array([0.1, 0.5, 0.9]), np.array([1.0, 0.2, 1.5])
    explored = next_rate(x, losses, 1000.0)
    assert np.abs(explored - x).min() > 0.09  # far from what is known
    assert abs(next_rate(x, losses, 0.0) - 0.5) < 0.15  # near the best
    assert 0 <= next_rate(x, np.array([np.nan, 0.2, np.nan]), 0.0) <= 1
    assert next_rate(x, np.full(3, np.nan), 1.0) in CANDIDATES


def test_autolrs_tries_ten_rates_before_each_stage_and_runs_the_best_forecast() -> None:
    events: list[Event] = []
    tuner = Tuner(lr=(1e-4, 1e-1), steps=620, strategy=AutoLRS(), on_event=events.append)
    asked: list[Interval] = []
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            asked.append(p)
            tuner.tell(p, *loss(p, every=1))
    stages = [p for p in asked if p.fork == 10]
    assert [(p.start, p.stop) for p in stages] == [(0, 20), (20, 60), (60, 140), (140, 300), (300, 460), (460, 620)]
    for stage in stages:
        trials = [p for p in asked if p.start == stage.start and p.fork != 10]
        assert len(trials) == 10
        assert {p.stop - p.start for p in trials} == {(stage.stop - stage.start) // 10}
        assert stage.schedule.multipliers[-1] in {p.schedule.multipliers[-1] for p in trials}
        assert {p.parent for p in trials} == ({None} if stage.start == 0 else {10})
    assert {e.fork for e in events if isinstance(e, Dropped)} == {p.fork for p in asked} - {10}
    assert tuner.result.fork == 10
    assert sum(p.stop - p.start for p in asked) == tuner.total_steps == 1240


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AutoLRS(cost=1.0), r"cost must lie in \(1, 11\] for 10 trials, got 1.0"),
        (lambda: AutoLRS(trials=1), "expected two trials"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=100, strategy=AutoLRS()), "100 steps are too few for stages"),
        (lambda: PopulationBasedBandits(forks=0), "at least one fork"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=9, strategy=PopulationBasedTraining()), "9 steps are too few"),
    ],
)
def test_bad_settings_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
