"""The covariance of what the law misses."""

import numpy as np
import pytest

from paceline import Schedule, Trace
from paceline.model.law.ancestry import shared_until
from paceline.model.law.misfit import SPREAD, ResidualPoints, covariance, prior_centre

CONSTANT = Schedule.constant(0.1, 1000)
PARTS = {"shared": 0, "luck": 3, "own": 4}


def family() -> list[Trace]:
    """A run, forks of it, a fork of a fork, one cloned before its parent was, and a stranger."""
    steps = np.arange(10, 501, 10)
    parent = Trace(steps, 1 / steps, CONSTANT, name="parent")

    def fork(of: Trace, at: int) -> Trace:
        return of.fork(np.arange(at + 10, 1001, 10), 1 / np.arange(at + 10, 1001, 10), CONSTANT, at=at)

    one = fork(parent, 300)
    stranger = Trace(steps, 1 / steps, CONSTANT, name="stranger")
    return [parent, one, fork(parent, 300), fork(parent, 100), fork(one, 600), fork(one, 50), stranger]


def points(rng: np.random.Generator, traces: list[Trace], tasks: int = 1) -> ResidualPoints:
    """Some points along every run, at all sorts of rates."""
    run = np.repeat(np.arange(len(traces)), 8)
    steps = np.concatenate([np.sort(rng.choice(t.steps, 8, replace=False)) for t in traces])
    count = len(run)
    return ResidualPoints(
        np.log(steps),
        rng.uniform(-4, -1, count),
        rng.uniform(0.2, 3, count),
        rng.uniform(1, 2, count),
        np.maximum(0, np.log(steps / 500)) * 0.2,
        run,
        rng.integers(tasks, size=count),
    )


def shared_until_of(traces: list[Trace]) -> np.ndarray:
    return np.array([[shared_until(a, b) for b in traces] for a in traces])


def only(part: str) -> np.ndarray:
    """Log scales with one part at 1 and the others at (almost) nothing."""
    scales = prior_centre(1.0)
    scales[list(PARTS.values())] = -30
    scales[PARTS[part]] = 0.0
    return scales


@pytest.mark.parametrize("seed", range(5))
def test_symmetric_and_positive_also_for_forks(seed: int) -> None:
    rng, traces = np.random.default_rng(seed), family()
    at, correlation = points(rng, traces, 2), np.array([[1.0, 0.4], [0.4, 1.0]])
    for scales in (prior_centre(0.5), prior_centre(0.5) + rng.normal(size=7) * SPREAD, only("own")):
        matrix = covariance(scales, at, at, shared_until_of(traces), correlation)
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
        assert np.linalg.eigvalsh(matrix).min() > -1e-10 * matrix.max()


def test_a_part_of_the_rows_is_a_part_of_the_matrix(rng: np.random.Generator) -> None:
    traces, correlation = family(), np.ones((1, 1))
    at, scales = points(rng, traces), prior_centre(0.5)
    some = np.array([3, 9, 20, 41])
    part = ResidualPoints(*(getattr(at, name)[some] for name in ResidualPoints.__slots__))
    whole = covariance(scales, at, at, shared_until_of(traces), correlation)
    np.testing.assert_allclose(covariance(scales, part, at, shared_until_of(traces), correlation), whole[some])


def test_distances_lead_along_the_tree() -> None:
    traces = family()
    ones, steps = np.ones(2), np.array([400.0, 500.0])

    def own(a: int, b: int) -> float:
        at = ResidualPoints(np.log(steps), -ones, ones, ones, 0 * ones, np.array([a, b]), np.zeros(2, dtype=int))
        scales = only("own")
        scales[5] = 0.0  # lengths in log steps are then distances
        return covariance(scales, at, at, shared_until_of(traces), np.ones((1, 1)))[0, 1]

    along, over = np.log(500 / 400), np.log(400 / 300) + np.log(500 / 300)
    assert own(0, 0) == pytest.approx(np.exp(-along))
    assert own(1, 2) == pytest.approx(np.exp(-over))  # two forks from step 300: back to where they parted, and on
    assert own(0, 1) == pytest.approx(np.exp(-over))
    assert own(1, 4) == pytest.approx(np.exp(-along))  # cloned later, at 600: still the same run
    assert own(0, 6) == pytest.approx(0, abs=1e-12)


def test_tasks_share_as_much_as_their_correlation() -> None:
    ones, correlation = np.ones(2), np.array([[1.0, 0.3], [0.3, 1.0]])
    at = ResidualPoints(5 * ones, -ones, ones, ones, 0 * ones, np.array([0, 1]), np.array([0, 1]))
    matrix = covariance(only("shared"), at, at, np.array([[np.inf, -np.inf], [-np.inf, np.inf]]), correlation)
    np.testing.assert_allclose(matrix, correlation)
