"""The families that multi-task tuning is measured on."""

import numpy as np
import pytest

from benchmarks import _digit_pairs
from benchmarks._family import family
from benchmarks._multitask_problems import PROBLEMS, Runs, of_quadratics, problem_named
from paceline.strategy.multitask import Run


def test_no_schedule_is_better_than_the_best_of_the_quadratics() -> None:
    problem = of_quadratics(family(2))
    best = problem.best()
    rng = np.random.default_rng(0)
    for task in problem.tasks:
        for x in rng.uniform(size=(10, problem.space.intervals)):
            assert problem.judge(task, problem.space.schedule(x)) >= best[task] - 1e-9


@pytest.mark.parametrize("name", PROBLEMS)
def test_runs_repeat_with_their_seed_and_the_best_one_is_the_answer(name: str) -> None:
    problem = problem_named(name)
    task, d = problem.tasks[0], problem.space.intervals
    once, again = Runs(problem, 1), Runs(problem, 1)
    for x in (0.2, 0.6):
        for runs in (once, again):
            runs.make(Run(task, (x,) * d))
            for other in problem.tasks[1:]:
                runs.make(Run(other, (x,) * d))
    for one, other in zip(once.traces, again.traces, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    x, ends = once.finals(task)
    expected = problem.space.schedule(x[ends.argmin()])
    np.testing.assert_allclose(once.best_observed()[task].multipliers, expected.multipliers)


def test_the_best_known_schedules_of_the_digits_are_on_record() -> None:
    best = _digit_pairs.best_known()
    assert set(best) == set(_digit_pairs.PAIRS)
    assert all(len(found["x"]) == _digit_pairs.SPACE.intervals for found in best.values())  # type: ignore[arg-type]
