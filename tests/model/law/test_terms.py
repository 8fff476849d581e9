"""The terms of the law against its formula, and the priors of its coefficients."""

import numpy as np
import pytest
import torch

from paceline.model.law.settings import FORM
from paceline.model.law.terms import (
    CENTRE,
    COUNT,
    DECAYS,
    EXPONENTIALS,
    NOISE,
    neighbour_precision,
    prior_precision,
    progress_left,
    terms,
)
from paceline.model.linalg import tensor

LARGEST = 20.0
RATE_SUM = torch.tensor([0.5, 3.0, 20.0]).double()


def test_the_columns_are_those_of_the_formula(rng: np.random.Generator) -> None:
    noise, exponents = tensor(rng.uniform(size=(3, 6))), tensor(CENTRE)
    a, origin, _, z = np.exp(CENTRE[0]), np.exp(CENTRE[1]), CENTRE[2], CENTRE[3]
    coefficients = rng.uniform(size=COUNT)
    s = RATE_SUM.numpy()
    u = s + origin * LARGEST
    law = coefficients[0] + coefficients[1] * (u / LARGEST) ** -a
    law += np.exp(-np.outer(s / LARGEST, DECAYS)) @ coefficients[EXPONENTIALS]
    law += (u / (LARGEST * (1 + origin))) ** z * (noise.numpy() @ coefficients[NOISE])
    np.testing.assert_allclose(terms(exponents, RATE_SUM, noise, LARGEST).numpy() @ coefficients, law)


def test_the_slope_of_the_progress_left_is_its_derivative(rng: np.random.Generator) -> None:
    coefficients, exponents = tensor(rng.uniform(size=COUNT)), tensor(CENTRE)
    log_sum = torch.log(RATE_SUM).requires_grad_()
    left, slope = progress_left(exponents, coefficients, torch.exp(log_sum), LARGEST)
    (gradient,) = torch.autograd.grad(left.sum(), log_sum)
    torch.testing.assert_close(slope, -gradient)


def test_priors_scale_with_the_loss_and_with_how_far_it_moves() -> None:
    scale = prior_precision(2.0, 0.5) ** -0.5
    assert scale[0] == pytest.approx(2.0 * FORM.coefficient_scale)
    assert scale[EXPONENTIALS] == pytest.approx(FORM.exponential_scale)
    assert scale[NOISE] == pytest.approx(FORM.noise_scale)


def test_equal_weights_of_neighbouring_modes_cost_nothing() -> None:
    precision = neighbour_precision(prior_precision(1.0, 1.0))
    equal, single = np.zeros(COUNT), np.zeros(COUNT)
    equal[NOISE], single[NOISE.start + 1] = 0.3, 0.3
    assert equal @ precision @ equal == pytest.approx(0.0, abs=1e-9)
    assert single @ precision @ single == pytest.approx(2 * (0.3 / (FORM.noise_scale * FORM.neighbour_scale)) ** 2)
