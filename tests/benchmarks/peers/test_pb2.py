"""PB2: whom it replaces, what its model is of, and its upper bound against the dense formula."""

import numpy as np

from benchmarks.peers import PopulationBasedBandits, gaussian_process
from benchmarks.peers.pb2 import changes, kernel, upper_bound
from paceline.tuner import Tuner
from tests.reference import condition
from tests.tuner.toy_study import loss


def population(rounds: int) -> Tuner:
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=PopulationBasedBandits(forks=6, intervals=10))
    while tuner.history.round <= rounds:
        for p in tuner.ask() or []:
            if p.fork == 1:
                tuner.fail(p, "out of memory")
            else:
                tuner.tell(p, *loss(p))
    return tuner


def test_it_replaces_the_worst_quarter_and_what_failed_by_clones_of_the_best() -> None:
    tuner = population(1)
    ranked = sorted((f for f in tuner.history.forks if f.trace and not f.failure), key=lambda f: f.trace.values[-1])
    clones = [f for f in tuner.history.forks if f.parent is not None]
    assert len(clones) == 2
    assert {f.parent for f in clones} <= {f.id for f in ranked[:2]}
    assert [f.id for f in tuner.history.forks if not f.alive] == sorted([1, ranked[-1].id])


def test_it_models_standardised_changes_and_failures_as_the_worst() -> None:
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
    best = gaussian_process.fit([kernel(points, points, *hyper) for hyper in grid], y)
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
