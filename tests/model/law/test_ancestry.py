"""Until when two runs were the same run."""

import numpy as np
import pytest

from paceline import Schedule, Trace
from paceline.model.law.ancestry import shared_until

CONSTANT = Schedule.constant(0.1, 1000)


def trace(stop: int = 500, **fields) -> Trace:
    steps = np.arange(10, stop + 1, 10)
    return Trace(steps, 1 + 1 / steps, CONSTANT, **fields)


def fork(parent: Trace, at: int, **fields) -> Trace:
    steps = np.arange(at + 10, 1001, 10)
    return parent.fork(steps, 1 + 1 / steps, CONSTANT, at=at, **fields)


def test_forks_share_the_past_up_to_the_earlier_fork() -> None:
    parent = trace(name="parent")
    one, other = fork(parent, 300, name="one"), fork(parent, 200, name="other")
    twin, child = fork(parent, 300, name="twin"), fork(one, 700, name="child")
    early = fork(one, 100, name="early")  # cloned before its parent was: a clone of the grandparent
    expected = {
        (parent, parent): np.inf,
        (parent, one): 300,
        (one, other): 200,
        (one, twin): 300,
        (one, child): 700,
        (other, child): 200,
        (child, parent): 300,
        (early, parent): 100,
        (early, one): 100,
        (early, other): 100,
    }
    for (a, b), step in expected.items():
        assert shared_until(a, b) == shared_until(b, a)
        assert np.exp(shared_until(a, b)) == pytest.approx(step)


def test_runs_are_the_same_by_name_and_task() -> None:
    stranger = trace(name="stranger")
    assert shared_until(trace(), trace()) == -np.inf
    assert shared_until(trace(name="a"), stranger) == -np.inf
    assert shared_until(fork(trace(name="a"), 100), fork(stranger, 100)) == -np.inf
    assert shared_until(trace(300, name="a"), trace(500, name="a")) == np.inf  # the same run, longer
    assert shared_until(trace(name="a", task="x"), trace(name="a", task="y")) == -np.inf
    longer = fork(trace(500, name="a"), 200)
    assert np.exp(shared_until(longer, fork(trace(300, name="a"), 250))) == pytest.approx(200)
