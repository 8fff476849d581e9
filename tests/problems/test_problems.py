import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.model import LINKS
from paceline.problems import DrawnFamily, Quadratic, QuadraticTraining, train_digits
from tests import reference


def test_drawn_latents_have_the_models_covariance() -> None:
    points = np.array([[0.2, 0.3], [0.4, 0.3], [0.9, 0.1]])
    draws = []
    for seed in range(1500):
        family = DrawnFamily.of("linear", np.random.default_rng(seed), features=60)
        draws.append([family.latent(*p)[0] for p in points])
    expected = reference.matern52(points, points, 1.0, np.array([0.6, 0.6]))
    np.testing.assert_allclose(np.cov(np.array(draws).T), expected, atol=0.15)


@pytest.mark.parametrize("link", list(LINKS))
def test_drawn_runs_follow_the_link(link: str) -> None:
    rng = np.random.default_rng(0)
    family = DrawnFamily.of(link, rng, noise=0.0, effect=0.0)
    run = family.run(np.array([0.2, 0.7]), rng, length=10, every=5)
    assert run.steps.tolist() == [0, 5, 10, 15, 20]
    f = torch.tensor(family.latent(float(run.values[2]), 0.7))
    increment = float(family.link(f[:, None], torch.tensor([1.0]).double())[0])
    assert run.values[4] - run.values[2] == pytest.approx(increment)


def test_digits_learn_repeat_and_fail_as_traces() -> None:
    schedule = Schedule.of("linear", 1e-2, 100)
    one, two = train_digits(schedule, seed=1), train_digits(schedule, seed=1)
    np.testing.assert_array_equal(one.values, two.values)
    assert one.last_value < 0.5 * one.values[0]
    assert one.last_step == 100
    assert train_digits(schedule, seed=2).values[0] != one.values[0]


def test_the_quadratics_closed_form_is_the_mean_over_runs() -> None:
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


def test_a_quadratic_run_continues_from_its_state() -> None:
    schedule = Schedule.of("cosine", 0.5, 60)
    whole, first, second = (QuadraticTraining(Quadratic(), 3) for _ in range(3))
    expected = list(whole.advance(schedule, 60))
    seen = list(first.advance(schedule, 30))
    second.load_state_dict(first.state_dict())
    assert seen + list(second.advance(schedule, 60)) == expected
