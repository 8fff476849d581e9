"""Gauss-Hermite quadrature against moments of a Gaussian."""

import pytest
import torch

from paceline.model.quadrature import expectation, hermite


def test_polynomials_are_exact_up_to_their_degree() -> None:
    z, w = hermite(4)
    moments = [1, 0, 1, 0, 3, 0, 15, 0]
    for degree, moment in enumerate(moments):
        assert float((w * z**degree).sum()) == pytest.approx(moment, abs=1e-12)


def test_expectations_are_elementwise() -> None:
    mean, variance = torch.tensor([0.3, -1.0]).double(), torch.tensor([0.5, 2.0]).double()
    torch.testing.assert_close(expectation(torch.exp, mean, variance), torch.exp(mean + variance / 2))
