"""Problems as a torch user writes them are the problems that tuners see."""

import numpy as np
import pytest
import torch

from benchmarks._plain import plain
from benchmarks._problems import PROBLEMS, Problem, quadratic
from paceline.traces import Schedule

TINY = Problem("tiny", quadratic(1.0, 20), 50, 0.1, 2, network=False)


def test_a_loop_of_ones_own_takes_the_steps_of_the_training() -> None:
    schedule = Schedule.constant(0.1, TINY.steps)
    *_, (_, values) = TINY.make(3).advance(schedule, TINY.steps)
    run = plain(TINY, 3)
    optimizer = run.optimizer()
    optimizer.param_groups[0]["lr"] = 0.1
    for _ in range(TINY.steps):
        optimizer.zero_grad()
        run.loss(run.model, next(run.batches)).backward()
        optimizer.step()
    assert run.evaluate(run.model) == pytest.approx(values["raw"], rel=1e-9)  # type: ignore[index]


def test_a_network_starts_from_the_weights_of_its_training() -> None:
    problem = PROBLEMS["digits"]
    training, run = problem.make(2), plain(problem, 2)
    for a, b in zip(training.model.parameters(), run.model.parameters(), strict=True):  # type: ignore[attr-defined]
        assert torch.equal(a, b)


def test_bounds_span_four_decades_around_the_middle_and_move_with_the_seed() -> None:
    lows = [TINY.bounds(seed)[0] for seed in range(20)]
    assert len(set(lows)) == 20
    for seed in range(20):
        low, high = TINY.bounds(seed)
        assert high / low == pytest.approx(1e4)
        assert abs(np.log10(low * high) / 2 - np.log10(TINY.middle)) <= 0.25
