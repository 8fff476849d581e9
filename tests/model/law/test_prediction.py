"""The law and its misfit at the steps of a schedule."""

from functools import cache

import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.model.law import LawModel
from paceline.model.law.prediction import law_at, predict
from paceline.model.law.state import SchedulePieces
from tests.model.law import example_law

COSINE = Schedule.of("cosine", 0.05, 1000)
STEPS = np.array([500, 800, 1000])


@cache
def model() -> LawModel:
    return LawModel.fit(example_law.runs())


def deviations(start=None) -> np.ndarray:
    """Standard deviation of the misfit at STEPS."""
    law = model()
    root = predict(law.law, law.fitted_runs, COSINE, STEPS, start, 0, law.noise).root
    return (root @ root.T).diagonal().sqrt().numpy()


def test_the_law_is_differentiable_in_the_rates() -> None:
    pieces = SchedulePieces.of(COSINE, STEPS)
    rates = pieces.rates.clone().requires_grad_()
    differentiable = SchedulePieces(rates, pieces.lengths, pieces.counts, rates[pieces.counts - 1])
    (gradient,) = torch.autograd.grad(law_at(model().law, differentiable, 0).sum(), rates)
    assert torch.isfinite(gradient).all()
    assert bool((gradient != 0).any())


def test_the_median_of_the_law_is_near_the_truth() -> None:
    law = law_at(model().law, SchedulePieces.of(COSINE, STEPS), 0).median(0).values.numpy()
    np.testing.assert_allclose(law, example_law.loss(COSINE, STEPS), rtol=0.02)


def test_observations_of_the_run_make_its_misfit_less_uncertain() -> None:
    run = example_law.run(COSINE, seed=77, until=480)
    new, later = deviations(), deviations(run)
    assert np.all(later < new)
    assert later[0] < later[-1]  # the nearer step is more certain


def test_a_fitted_run_brings_nothing_new() -> None:
    law, run = model(), example_law.runs()[2]
    one, other = (
        predict(law.law, law.fitted_runs, run.schedule, np.array([1000]), start, 0, law.noise)
        for start in (run.head(30), run.head(40))
    )
    torch.testing.assert_close(one.mean, other.mean)
    assert float(one.root[0, 0]) == pytest.approx(float(other.root[0, 0]))
