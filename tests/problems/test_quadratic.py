import numpy as np
import pytest

from paceline import Schedule
from paceline.problems import Quadratic, QuadraticTraining


def test_the_closed_form_is_the_mean_over_runs() -> None:
    problem = Quadratic(noise=0.5, dims=20)
    schedule = Schedule([0.8, 0.1], [0, 40, 80])
    runs = [list(QuadraticTraining(problem, seed, every=40).advance(schedule, 80)) for seed in range(400)]
    expected = problem.expected_loss(schedule)
    for i, step in enumerate((40, 80)):
        values = np.array([run[i][1]["raw"] for run in runs])
        assert values.mean() == pytest.approx(expected[step], abs=4 * values.std() / np.sqrt(400))


def test_the_best_schedule_beats_any_linear_decay_in_expectation() -> None:
    problem = Quadratic(noise=1.0, dims=50)
    best = problem.expected_loss(problem.best_schedule(400))[-1]
    linear = min(problem.expected_loss(Schedule.of("linear", peak, 400))[-1] for peak in np.geomspace(0.05, 1.9, 15))
    assert best < linear


def test_a_run_continues_from_its_state() -> None:
    schedule = Schedule.of("cosine", 0.5, 60)
    whole, first, second = (QuadraticTraining(Quadratic(), 3) for _ in range(3))
    expected = list(whole.advance(schedule, 60))
    seen = list(first.advance(schedule, 30))
    second.load_state_dict(first.state_dict())
    assert seen + list(second.advance(schedule, 60)) == expected
